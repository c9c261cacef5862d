/** How the families of configured things look into the configuration: what a file says of one, where, and how to edit it. */
import type { PatchKind } from '../../contract/patches.ts'
import type { TextFiles, TreeFiles } from '../../files/configuration.ts'
import type { PlainTable } from '../../files/toml.ts'
import { elementsOf, emptyTable, isPlainTable, plainOf, type TableNode, tableOf, textOf } from '../../files/toml.ts'
import { addElement, addTable, readPlain, removeTable, setValue } from '../../files/toml-edit.ts'
import { problem } from '../../kernel/problem.ts'
import type { AgentDeclaration } from '../../modules/agents/definitions.ts'
import { draftIdentity } from '../../modules/config/compose/drafts.ts'
import { type EffectiveConfig, originsOf } from '../../modules/config/compose/effective.ts'
import type { StoredPatch } from '../../modules/patches/handlers.ts'
import type { Declaration } from '../../modules/providers/handlers.ts'
import type { RigDeclaration } from '../../modules/rigs/rigs.ts'

/** TOML files as trees; every edit leaves the rest of the text as it is. */
export function treeFiles(files: TextFiles): TreeFiles {
  const edit = (file: string, change: (text: string) => string): void => {
    const before = files.get(file)
    const after = change(before ?? '')
    // A file of ours that held nothing else: as if it had never been there.
    if (after === '' && before !== undefined && file === '.svc/site.toml') files.delete(file)
    else if (after !== (before ?? '')) files.set(file, after)
  }
  return {
    list: () => files.list().filter((file) => file.endsWith('.toml')),
    read: (file) => asTable(readPlain(files.get(file) ?? '')),
    set: (file, path, value) => edit(file, (text) => setValue(text, path, value)),
    remove: (file, path) => edit(file, (text) => removeTable(text, path)),
    addTable: (file, path, values) => edit(file, (text) => addTable(text, path, values)),
    addElement: (file, path, values) => edit(file, (text) => addElement(text, path, values)),
  }
}

export function declaredProvider(config: EffectiveConfig, name: string): Declaration | undefined {
  const { composed } = originsOf(config)
  const own = tableOf(tableOf(composed.root.merged, 'providers') ?? emptyTable(), name)
  const node = own ?? composed.providers.get(name)?.raw
  if (node === undefined) return undefined
  const { file, line } = node.keyAt ?? node.at
  // A built-in one that is used, or patched, as it is.
  if (line === 0) return undefined
  return { raw: plainTable(node), file, line, pack: own === undefined ? file : undefined }
}

export function declaredAgent(config: EffectiveConfig, identity: string): AgentDeclaration | undefined {
  const found = originsOf(config).composed.agents.find(({ draft }) => draftIdentity(draft) === identity)
  if (found === undefined) return undefined
  const { declared, origin, at } = found.draft
  const own = found.draft.binding === '' && !origin.startsWith('pack')
  const directory = origin.startsWith('agents/') ? origin : undefined
  return {
    fields: plainTable(declared),
    file: directory === undefined ? at.file : `${directory}/agent.toml`,
    line: at.line,
    directory,
    pack: own ? undefined : origin.replace(/^pack:?/, ''),
  }
}

export function declaredRig(config: EffectiveConfig, name: string): RigDeclaration | undefined {
  const { merged } = originsOf(config).composed.root
  const node = elementsOf(merged, 'rigs').find((rig) => textOf(rig, 'name') === name)
  return node === undefined ? undefined : { fields: plainTable(node), file: node.at.file, line: node.at.line }
}

const PATCH_TABLES = { agents: 'agent', rigs: 'rigs', providers: 'providers' } as const satisfies Record<
  PatchKind,
  string
>

export function storedPatches(config: EffectiveConfig, kind: PatchKind): readonly StoredPatch[] {
  const { merged } = originsOf(config).composed.root
  return elementsOf(tableOf(merged, 'patches') ?? emptyTable(), PATCH_TABLES[kind]).map((node) => ({
    file: node.at.file,
    line: node.at.line,
    fields: plainTable(node),
  }))
}

const plainTable = (node: TableNode): PlainTable => asTable(plainOf(node))

function asTable(value: ReturnType<typeof plainOf>): PlainTable {
  if (isPlainTable(value)) return value
  throw problem('conflict-config', 'the file is not a table')
}
