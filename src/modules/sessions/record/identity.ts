/** Who the process of a session is, once it has been started. */
import type { Identity } from '../../../runtimes/process/runtime.ts'
import type { SessionRecord } from './record.ts'

export function identityOf({ id, generation, token }: SessionRecord): Identity | undefined {
  return token === undefined ? undefined : { sessionId: id, generation, token }
}
