// Loads a peer from the packages beside this file, which the main installation does not have. The measured
// code is compiled into a folder of its own, so it cannot find them by name.
/** @param {string} name */
export const load = (name) => import(name)
