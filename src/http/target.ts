/** What a request asks for: the target of its first line in either form that a server may get (RFC 9112 §3.2). */

export interface Target {
  /** Path and query. */
  readonly url: string
  /** Path without the query, still encoded. */
  readonly path: string
  /** What follows the question mark. */
  readonly search: string
  /** The host that the target itself names, as proxies' clients write it; it replaces the Host header. */
  readonly authority: string | undefined
}

const ABSOLUTE = /^https?:\/\/([^/?#]*)/i

export function readTarget(target: string): Target {
  if (target.startsWith('/')) return split(target, undefined)
  const [whole = '', authority] = ABSOLUTE.exec(target) ?? []
  const rest = target.slice(whole.length)
  return split(authority === undefined || rest.startsWith('/') ? rest : `/${rest}`, authority)
}

function split(url: string, authority: string | undefined): Target {
  const mark = url.indexOf('?')
  if (mark < 0) return { url, path: url, search: '', authority }
  return { url, path: url.slice(0, mark), search: url.slice(mark + 1), authority }
}
