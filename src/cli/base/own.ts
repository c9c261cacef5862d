/** Who runs the command, where an agent does. */
import type { Io } from './io.ts'

/** The session that the command runs in. */
export const ownSessionId = ({ env }: Pick<Io, 'env'>): string | undefined => env['SVC_SESSION_ID'] || undefined
