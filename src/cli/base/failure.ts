/** How commands fail: what people and scripts see, and with which exit code (sheet 08 §4.4, §4.5). */
import { TimedOut } from '../../client/clock.ts'
import { ApiProblem, BadParameter, DecodeError, isRecord, LostReply, Unreachable } from '../../client/problems.ts'
import { EXIT } from '../../contract/base/exit-codes.ts'
import { LayoutError } from '../print/format.ts'
import { BrokenPipe, Interrupted, type Io } from './io.ts'

export { EXIT } from '../../contract/base/exit-codes.ts'

interface FailureOptions {
  readonly hint?: string | undefined
  readonly requestId?: string | undefined
  /** What `-o json` prints instead of the sentence. */
  readonly body?: Readonly<Record<string, unknown>>
  readonly cause?: unknown
}

/** A command that cannot do what was asked, in one sentence. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: number
  readonly hint: string | undefined
  readonly requestId: string | undefined
  readonly body: Readonly<Record<string, unknown>> | undefined

  constructor(exitCode: number, message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.exitCode = exitCode
    this.hint = options.hint
    this.requestId = options.requestId
    this.body = options.body
  }
}

/** Wrong flags, wrong values, wrong combinations. */
export const usageError = (message: string, hint?: string): Failure => new Failure(EXIT.usage, message, { hint })

const CODE_BY_STATUS: Readonly<Record<number, number>> = {
  400: EXIT.rejected,
  401: EXIT.denied,
  403: EXIT.denied,
  404: EXIT.notFound,
  409: EXIT.conflict,
  410: EXIT.cursorExpired,
  412: EXIT.conflict,
  422: EXIT.rejected,
  503: EXIT.unavailable,
}

/** What is missing on the host does not come by trying again, though the status is that of what does. */
const CODE_BY_PROBLEM: Readonly<Record<string, number>> = { 'missing-dependency': EXIT.conflict }

export const exitCodeOf = (status: number, code = ''): number =>
  CODE_BY_PROBLEM[code] ?? CODE_BY_STATUS[status] ?? EXIT.failure

/** What a person calls a field that a problem names, such as `body.priority`. */
type FieldNames = (location: string) => string

/** How the person who gave the command speaks of things. */
interface Wording {
  readonly fieldNames: FieldNames
  /** The same command line with this Idempotency-Key; undefined where it takes none. */
  readonly again: (key: string) => string | undefined
}

const asSent: FieldNames = (location) => location

/** Whatever was thrown, as a failure with its exit code. */
export function toFailure(
  thrown: unknown,
  { fieldNames = asSent, again = () => undefined }: Partial<Wording> = {},
): Failure {
  if (thrown instanceof Failure) return thrown
  if (thrown instanceof ApiProblem) return problemFailure(thrown, fieldNames)
  if (thrown instanceof LayoutError) return new Failure(EXIT.usage, thrown.message, { hint: thrown.hint })
  if (thrown instanceof BadParameter) {
    return new Failure(EXIT.usage, `${fieldNames(`path.${thrown.parameter}`)} ${thrown.why}`, { cause: thrown })
  }
  if (thrown instanceof Unreachable) {
    const hint = thrown.unknownHost
      ? 'name it with --api URL or SVC_API'
      : thrown.refused
        ? 'start it with: svcctl serve'
        : FOREIGN_HINT
    return new Failure(EXIT.unavailable, thrown.message, { hint, cause: thrown })
  }
  if (thrown instanceof LostReply) return lostFailure(thrown, again)
  if (thrown instanceof TimedOut) return new Failure(EXIT.unavailable, thrown.message, { cause: thrown })
  if (thrown instanceof DecodeError) return new Failure(EXIT.failure, `decode: ${thrown.message}`, { cause: thrown })
  return new Failure(EXIT.failure, thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown })
}

function problemFailure(problem: ApiProblem, fieldNames: FieldNames): Failure {
  return new Failure(
    exitCodeOf(problem.status, problem.code),
    `${sentenceOf(problem, fieldNames)}${issuesOf(problem)}`,
    {
      hint: hintFor(problem),
      requestId: problem.requestId,
      body: problem.body,
      cause: problem,
    },
  )
}

/** The detail, which says the first error as the API names it, in the words of who reads it; then the other errors. */
function sentenceOf({ detail, errors }: ApiProblem, fieldNames: FieldNames): string {
  const said = ({ location, message }: ApiProblem['errors'][number]) => `${fieldNames(location)}: ${message}`
  const first = errors.find(({ location, message }) => detail.includes(`${location}: ${message}`))
  const sentence =
    first === undefined ? detail : detail.replace(`${first.location}: ${first.message}`, () => said(first))
  return [sentence, ...errors.filter((one) => one !== first).map((one) => `  ${said(one)}`)].join('\n')
}

/** All that is wrong with a file, where there is more than the detail says. */
function issuesOf({ errors, body: { issues } }: ApiProblem): string {
  if (!Array.isArray(issues) || issues.length < 2 || errors.length > 0) return ''
  return issueSentences(issues)
}

/** A line for each issue of a configuration, formula or order. */
export const issueSentences = (issues: readonly unknown[]): string =>
  issues
    .filter(isRecord)
    .map(({ file, line, column, message, hint }) => {
      const more = typeof hint === 'string' ? ` (${hint})` : ''
      return `\n  ${file}:${line}:${column}: ${message}${more}`
    })
    .join('')

function lostFailure(lost: LostReply, again: Wording['again']): Failure {
  const { key } = lost.request
  const same = key === undefined ? undefined : again(key)
  const hint =
    same === undefined
      ? 'look at it before you say it again; what was accepted is in: svcctl request list'
      : `say the same again, it is done once only: ${same}\nhint: or see what was accepted: svcctl request list`
  const body = { detail: lost.message, exit_code: EXIT.outcomeUnknown, idempotency_key: key }
  return new Failure(EXIT.outcomeUnknown, lost.message, { hint, body, cause: lost })
}

const FOREIGN_HINT = 'another program may have the port of the server; --debug says where it was looked for'

function hintFor(problem: ApiProblem): string | undefined {
  if (problem.code.startsWith('http-') && problem.requestId === undefined) return FOREIGN_HINT
  if (problem.code === 'city-not-found') return 'see the cities and their states with: svcctl city list'
  if (problem.code === 'no-event-providers') return 'register a city first: svcctl city create DIR'
  if (problem.code === 'cursor-expired') return 'list what is retained first, then go on from there'
  if (problem.status === 401) return 'put the token of the server into SVC_TOKEN'
  const requestId = problem.body['request_id']
  if (problem.status === 409 && typeof requestId === 'string')
    return `wait for it with: svcctl request wait ${requestId}`
  return undefined
}

export interface ReportStyle extends Partial<Wording> {
  /** Before every sentence, for example `svcctl events: `. */
  readonly prefix: string
  /** One JSON object instead of sentences. */
  readonly json: boolean
}

/** Tells stderr what went wrong and returns the exit code. */
export async function report(thrown: unknown, io: Io, style: ReportStyle): Promise<number> {
  if (thrown instanceof BrokenPipe) return EXIT.ok
  if (thrown instanceof Interrupted) return thrown.exitCode
  const failure = toFailure(thrown, style)
  await io.stderr.write(style.json ? jsonReport(failure) : textReport(failure, style.prefix)).catch(() => undefined)
  return failure.exitCode
}

function textReport(failure: Failure, prefix: string): string {
  const lines = [`error: ${prefix}${failure.message}`]
  if (failure.hint !== undefined) lines.push(`hint: ${failure.hint}`)
  if (failure.requestId !== undefined) lines.push(`request id: ${failure.requestId}`)
  return `${lines.map(printable).join('\n')}\n`
}

function jsonReport(failure: Failure): string {
  const { body = {}, message, hint, requestId } = failure
  // A problem may carry the id of an accepted request under the same name; that one is the more useful of the two.
  return `${JSON.stringify({
    ...(Object.keys(body).length > 0 ? body : { detail: message, exit_code: failure.exitCode }),
    ...(hint === undefined ? {} : { hint }),
    ...(requestId === undefined || 'request_id' in body ? {} : { request_id: requestId }),
  })}\n`
}

/** Whether who looks again and again may see it gone: the server starts anew, or the city does. */
export const mayPass = (error: unknown): boolean =>
  error instanceof Unreachable ||
  (error instanceof ApiProblem && (error.status >= 500 || error.code === 'city-not-found'))

/** Text of others without the control characters that would drive a terminal; tabs and newlines stay. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}--[\t\n]]/gv, (control) => `\\x${control.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
