/** What beads and whatever makes them have in common. */

export const MAX_TITLE = 500
export const MAX_DESCRIPTION = 262_144
export const MAX_PERSON = 256
export const MAX_OUTPUT_BYTES = 262_144
export const FAILURE_CLASSES = ['transient', 'hard'] as const
