/** What is known of a file before it is read as a formula or an order, and what is wrong with it as a file. */
import type { CatalogDocument } from '../../../automation/catalog.ts'
import type { ConfigIssue } from '../../../files/issues.ts'
import type { SourceFile } from './sources.ts'

/** A name that a file can be written under. */
const FILE_NAME = /^[a-zA-Z0-9](?:[a-zA-Z0-9_-]{0,62}[a-zA-Z0-9])?$/
/** Names that paths of the API have a meaning of their own for. */
const RESERVED = { formula: ['validate'], order: ['validate', 'history'] } as const
export type DocumentKind = keyof typeof RESERVED

/** Why no file may have this name; undefined where it may. */
export function nameFault(kind: DocumentKind, name: string): string | undefined {
  if (!FILE_NAME.test(name))
    return 'must be letters, digits, `_` and `-`, at most 64, and begin and end with a letter or digit'
  const reserved: readonly string[] = RESERVED[kind]
  return reserved.includes(name) ? 'is a reserved name' : undefined
}

export function documentOf({ name, home, file, dir, revision }: SourceFile): Omit<CatalogDocument, 'issues'> {
  const pack = home.pack === undefined ? {} : { pack: home.pack }
  const untrusted = home.trusted || home.pack === undefined ? {} : { untrusted: home.pack }
  return { name, layer: home.layer, ...pack, ...untrusted, file, dir, revision }
}

export function faultsOf(kind: DocumentKind, source: SourceFile): readonly ConfigIssue[] {
  if (source.unreadable !== undefined) return [source.unreadable]
  const fault = nameFault(kind, source.name)
  return fault === undefined ? [] : [issueAt(source, `the name of the file, \`${source.name}\`, ${fault}`)]
}

export function untrustedIssue(source: SourceFile): ConfigIssue {
  const pack = source.home.pack ?? ''
  const name = pack.split('.')[0] ?? pack
  return {
    ...issueAt(source, `nobody has trusted the pack \`${pack}\` yet: nothing of it is started`),
    hint: `run \`svcctl pack trust ${name}\``,
  }
}

export const issueAt = ({ file }: SourceFile, message: string): ConfigIssue => ({
  file,
  line: 1,
  column: 1,
  key: '',
  message,
})
