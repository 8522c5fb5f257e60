// Generated from lua/ by `npm run generate`. Do not edit.
/* oxlint-disable */
export const LUA = {} as const
