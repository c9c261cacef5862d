/** Which bodies an operation takes, by what their headers say. */
import { isMutation, LINES_TYPE, type Operation } from '../../contract/base/operation.ts'
import { cut } from '../../contract/base/text.ts'
import { problem } from '../../kernel/problem.ts'

const MEDIA_TYPE = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+[ \t]*(?:;|$)/

/** Refuses with `unsupported-media-type`. Without a Content-Type the body is what the operation takes. */
export function checkMediaType(operation: Operation, header: (name: string) => string | undefined): void {
  const given = header('content-type')
  if (given === undefined || !isMutation(operation.method)) return
  if (operation.body === undefined) {
    // Where no body is taken, only what is no type at all is refused.
    if (MEDIA_TYPE.test(given)) return
    throw problem('unsupported-media-type', 'the Content-Type header is not a media type')
  }
  if (operation.bodyStream === 'bytes') {
    checkBytes(given, header)
    return
  }
  const wanted = operation.bodyStream === undefined ? (operation.bodyType ?? 'application/json') : LINES_TYPE
  // Nearly every client writes exactly this.
  if (given === wanted && header('content-encoding') === undefined) return
  const [type = '', ...parameters] = given
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  const patch = operation.method === 'PATCH' && type === 'application/merge-patch+json'
  const charset =
    parameters
      .find((part) => part.startsWith('charset='))
      ?.slice(8)
      .replaceAll('"', '') ?? 'utf-8'
  const encoding = header('content-encoding') ?? 'identity'
  if ((type === wanted || patch) && charset === 'utf-8' && encoding === 'identity') return
  throw problem('unsupported-media-type', `send ${wanted} in UTF-8, not ${cut(given, 80)}`, {
    errors: [{ location: 'header.Content-Type', message: `must be ${wanted}`, value: given.slice(0, 200) }],
  })
}

/** Bytes may be of any type, but not packed: nobody would unpack them. */
function checkBytes(given: string, header: (name: string) => string | undefined): void {
  if (MEDIA_TYPE.test(given) && (header('content-encoding') ?? 'identity') === 'identity') return
  throw problem('unsupported-media-type', 'send bytes as they are, with a media type that says what they are')
}
