/** Rigs in the city's files: adding, changing and removing them, and what names them. */
import { mergePatch, rewriteTable, type TreeFiles, type TreePath, tablesAt } from '../../files/configuration.ts'
import type { PlainTable, PlainValue } from '../../files/toml.ts'
import { isPlainTable } from '../../files/toml.ts'
import { problem } from '../../kernel/problem.ts'
import type { RigPlace } from './place.ts'

const HOME = 'city.toml'
const SITE = '.svc/site.toml'

/** Adds `[[rigs]]`, and the path where it belongs. */
export function addRig(
  tree: TreeFiles,
  name: string,
  place: RigPlace,
  fields: PlainTable,
  imports: Readonly<Record<string, PlainValue>>,
): void {
  const path: PlainTable = place.inCity === undefined ? {} : { path: place.inCity }
  const copied: PlainTable = Object.keys(imports).length === 0 ? {} : { imports }
  tree.addElement(HOME, ['rigs'], { name, ...path, ...fields, ...copied })
  if (place.inCity === undefined) bind(tree, name, place.directory)
}

/** Applies a merge patch to the entry; `place` undefined: its path stays, null: it loses it. Answers with the changed fields. */
export function changeRig(
  tree: TreeFiles,
  file: string,
  name: string,
  patch: Parameters<typeof mergePatch>[1],
  place: RigPlace | null | undefined,
): readonly string[] {
  const { path, fields } = entryOf(tree, file, name)
  const before = fields
  const merged = mergePatch(before, patch)
  const placed = place === undefined ? merged : withPath(merged, place)
  rewriteTable(tree, file, path, before, placed)
  const moved = place !== undefined && rebind(tree, name, place)
  const changed = changedKeys(before, placed)
  return moved && !changed.includes('path') ? [...changed, 'path'] : changed
}

/** Removes the rig and this machine's path of it. */
export function removeRig(tree: TreeFiles, name: string): void {
  for (const file of tree.list()) removeElements(tree, file, ['rigs'], (rig) => rig['name'] === name)
  tree.remove(SITE, ['rigs', name])
}

/** Tables whose elements name a rig, by the key that does. */
const NAMING: readonly { readonly path: readonly string[]; readonly key: string; readonly kind: string }[] = [
  { path: ['agent'], key: 'dir', kind: 'agent' },
  { path: ['named_session'], key: 'dir', kind: 'named_session' },
  { path: ['patches', 'agent'], key: 'dir', kind: 'patch' },
  { path: ['patches', 'named_session'], key: 'dir', kind: 'patch' },
  { path: ['patches', 'rigs'], key: 'name', kind: 'patch' },
  { path: ['orders', 'overrides'], key: 'rig', kind: 'order_override' },
]

/** Removes everything in the city's own files that names the rig; answers with what it was. */
export function removeReferrers(tree: TreeFiles, rig: string): readonly string[] {
  return tree
    .list()
    .flatMap((file) =>
      NAMING.flatMap(({ path, key, kind }) =>
        removeElements(tree, file, path, (element) => element[key] === rig).map(
          (element) => `${kind} ${titleOf(element)}`,
        ),
      ),
    )
}

function removeElements(
  tree: TreeFiles,
  file: string,
  path: readonly string[],
  isMeant: (element: PlainTable) => boolean,
): readonly PlainTable[] {
  const elements = tablesAt(tree.read(file), ...path)
  const found = [...elements.entries()].filter(([, element]) => isMeant(element))
  // From the end, so that the positions of the others stay.
  for (const [index] of found.toReversed()) tree.remove(file, [...path, index])
  return found.map(([, element]) => element)
}

const titleOf = (element: PlainTable): string => String(element['name'] ?? element['template'] ?? '')

function entryOf(
  tree: TreeFiles,
  file: string,
  name: string,
): { readonly path: TreePath; readonly fields: PlainTable } {
  const rigs = tablesAt(tree.read(file), 'rigs')
  const index = rigs.findIndex((rig) => rig['name'] === name)
  const fields = rigs[index]
  if (fields === undefined)
    throw problem('conflict-config', `${file} has the rig ${name} in a way that cannot be edited`)
  return { path: ['rigs', index], fields }
}

function withPath(fields: PlainTable, place: RigPlace | null): PlainTable {
  const { path: _path, ...rest } = fields
  return place?.inCity === undefined ? rest : { ...fields, path: place.inCity }
}

const bound = (tree: TreeFiles, name: string): PlainValue | undefined => {
  const { rigs } = tree.read(SITE)
  const entry = isPlainTable(rigs) && Object.hasOwn(rigs, name) ? rigs[name] : undefined
  return isPlainTable(entry) ? entry['path'] : undefined
}

function bind(tree: TreeFiles, name: string, directory: string): void {
  // An entry that was left behind by hand.
  tree.remove(SITE, ['rigs', name])
  tree.addTable(SITE, ['rigs', name], { path: directory })
}

function rebind(tree: TreeFiles, name: string, place: RigPlace | null): boolean {
  const before = bound(tree, name)
  const wanted = place === null || place.inCity !== undefined ? undefined : place.directory
  if (before === wanted) return false
  if (wanted === undefined) tree.remove(SITE, ['rigs', name])
  else if (before === undefined) bind(tree, name, wanted)
  else tree.set(SITE, ['rigs', name, 'path'], wanted)
  return true
}

function changedKeys(before: PlainTable, after: PlainTable): readonly string[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key])).sort()
}
