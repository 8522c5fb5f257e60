// Where the history lives among the notes of a store.

/** By the key of their minute and the process: `2030-01-31T12:05Z~a1b2c3d4e5f6.7`. Gone when they are in their minute. */
export const PART_SPACE = 'rollup-part'
export const MINUTE_SPACE = 'rollup-minute'
export const HOUR_SPACE = 'rollup-hour'
/** How much waited and ran, by the key of the minute or the hour. */
export const DEPTH_MINUTE_SPACE = 'depth-minute'
export const DEPTH_HOUR_SPACE = 'depth-hour'
