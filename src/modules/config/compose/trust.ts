/**
 * What of a composed city is from packs that nobody has trusted yet (decision 216): it is shown like the rest, and it
 * starts nothing. A value counts by the file that it stands in, so that a patch or a default of such a pack counts too.
 */
import { contains } from '../../../files/read.ts'
import type { ConfigNode } from '../../../files/toml.ts'
import type { Composed } from './compose.ts'
import type { LoadContext } from './context.ts'

export interface Untrusted {
  /** Names of the city's or a rig's own imports that bring packs which are not trusted. */
  readonly imports: ReadonlySet<string>
  /** The import whose pack has a say in one of these values; undefined where none has. */
  of(...nodes: readonly (ConfigNode | undefined)[]): string | undefined
  /** The import that brings the pack with this root. */
  at(root: string): string | undefined
  /** The import whose pack has one of these files. */
  holding(paths: readonly string[]): string | undefined
}

export function untrustedIn(context: LoadContext, { packs }: Composed): Untrusted {
  const names = new Map<string, string>()
  for (const { binding, entry } of packs) {
    const { root } = entry.pack
    if (context.untrusted.has(root) && !names.has(root)) names.set(root, binding.split('.')[0] ?? binding)
  }
  const from = (node: ConfigNode): string | undefined => {
    const own = names.get(context.homeOf(node.at).root)
    if (own !== undefined || node.kind === 'scalar') return own
    return first(node.kind === 'list' ? node.items : node.entries.values(), from)
  }
  return {
    imports: new Set(names.values()),
    of: (...nodes) => (names.size === 0 ? undefined : first(nodes, (node) => (node === undefined ? node : from(node)))),
    at: (root) => names.get(root),
    holding: (paths) => first(names, ([root, name]) => (paths.some((path) => contains(root, path)) ? name : undefined)),
  }
}

/** Says once for each such import that it starts nothing, where it is imported. */
export function warnUntrusted(context: LoadContext, { packs }: Composed, { imports }: Untrusted): void {
  for (const name of imports) {
    const found = packs.find(({ binding }) => binding === name)
    if (found === undefined) continue
    context.issues.warn(
      found.entry.at,
      `imports.${name}`,
      `the pack \`${name}\` is not trusted yet: nothing of it is started`,
      `look at it with \`svcctl pack get ${name} -o yaml\`, then run \`svcctl pack trust ${name}\``,
    )
  }
}

function first<T>(items: Iterable<T>, find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}
