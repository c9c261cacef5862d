let serial = 0

/** A name that nothing of this process has had, and that is the same in the next run. */
export const fresh = (prefix: string): string => `${prefix}${++serial}`
