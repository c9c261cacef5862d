/** Why an agent refused, for people: its message, and what it says beside it (`error.data`), which often is the reason. */
import { RequestError } from '@agentclientprotocol/sdk'
import { cut } from '../../contract/base/text.ts'

const MAX_DETAILS = 2_000

export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const details = error instanceof RequestError ? detailsOf(error.data) : undefined
  return details === undefined || message.includes(details) ? message : `${message}: ${details}`
}

/** Agents put a sentence there, an object with one, or whatever they have. */
function detailsOf(data: unknown): string | undefined {
  if (data === undefined || data === null) return undefined
  const said = typeof data === 'string' ? data : (sentenceOf(data) ?? JSON.stringify(data))
  return said === '' || said === '{}' ? undefined : cut(said, MAX_DETAILS)
}

function sentenceOf(data: object): string | undefined {
  const { details, message, error, reason }: Readonly<Record<string, unknown>> = { ...data }
  return [details, message, error, reason].find((one) => typeof one === 'string')
}
