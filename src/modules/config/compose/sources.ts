/** The spelling of pack sources: which kind one is, and what no source may contain. */

/** Where a pack comes from. */
export type PackSource =
  | { readonly kind: 'builtin'; readonly name: string }
  | { readonly kind: 'local'; readonly path: string; readonly base: 'pack' | 'city' }
  | { readonly kind: 'git'; readonly source: string }
  | { readonly kind: 'refused'; readonly message: string; readonly hint?: string }

const REMOTE = /^(?:https?|ssh|file|git):\/\/|^[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:|^github\.com\//
const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):/

/** The kind of a source. A refusal never repeats the source: it may hold a password. */
export function parsePackSource(source: string): PackSource {
  if (source.startsWith('builtin:')) return { kind: 'builtin', name: source.slice('builtin:'.length) }
  if (REMOTE.test(source)) return remoteSource(source)
  if (SCHEME.test(source)) return { kind: 'refused', message: 'a pack source is a path, `builtin:<name>` or a git URL' }
  if (source.startsWith('//')) return { kind: 'local', path: source.slice(2), base: 'city' }
  if (source.startsWith('/') || source.startsWith('~')) {
    return {
      kind: 'refused',
      message: 'a local pack must be inside the city',
      hint: 'write a relative path, or `//path` from the city’s directory',
    }
  }
  return { kind: 'local', path: source, base: 'pack' }
}

function remoteSource(source: string): PackSource {
  // `git@host:path` names the login that every git host uses; it is no secret. Anything else before an `@` may be one.
  const authority = /^[a-z]+:\/\/([^/]*)/.exec(source)?.[1] ?? ''
  const user = authority.includes('@') ? authority.slice(0, authority.lastIndexOf('@')) : ''
  if (user !== '' && !(source.startsWith('ssh://') && user === 'git')) {
    return {
      kind: 'refused',
      message: 'a pack source must not contain a user name or password',
      hint: 'put a pointer to the credential into `.svc/credentials.toml`',
    }
  }
  if (source.includes('#'))
    return { kind: 'refused', message: 'a pack source has no `#ref`', hint: 'pin with `version`' }
  return { kind: 'git', source }
}
