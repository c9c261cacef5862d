/** Why a pack is there: the imports that lead to it, from the city down. */
import type { PackReason, PackRun } from '../../../contract/packs.ts'
import { problem } from '../../../kernel/problem.ts'
import type { Closure, Home, Link } from '../city/closure.ts'
import { providesOf } from '../contents/provides.ts'
import { runsOf } from '../contents/runs.ts'
import { type Facts, type Look, type PackInventory, pinOf, shownSource } from './inventory.ts'

/** Diamonds multiply the ways. */
const MAX_WAYS = 100
const MAX_TRIES = 10_000
const MAX_RUNS = 500

/** What is known of the packs that a name stands for; it throws where it stands for none. */
export async function reasonsFor(
  inventory: PackInventory,
  dir: string,
  name: string,
  pause: () => Promise<void>,
): Promise<PackReason[]> {
  const look = inventory.look(dir)
  const named = look.closure.links.filter((link) => isNamed(link, name))
  if (named.length === 0) throw problem('pack-not-found', `nothing that this city imports is called ${name}`)
  const packs = new Map<string, Link[]>()
  for (const link of named) packs.set(keyOf(link), [...(packs.get(keyOf(link)) ?? []), link])
  return Promise.all([...packs.values()].map((links) => reason(inventory, look, links, pause)))
}

const isNamed = (link: Link, name: string): boolean =>
  link.binding === name || link.entry.name === name || link.to?.name === name || shownSource(link) === name

const keyOf = (link: Link): string => link.to?.dir ?? shownSource(link)

async function reason(
  inventory: PackInventory,
  look: Look,
  links: readonly Link[],
  pause: () => Promise<void>,
): Promise<PackReason> {
  const [first] = links
  if (first === undefined) throw new Error('a pack without an import')
  const facts = inventory.factsOf(look, first)
  const title = first.to?.name
  return {
    label: first.to?.label ?? shownSource(first),
    kind: facts.kind,
    ...(title === undefined ? {} : { title }),
    ...pinOf(facts),
    state: facts.state,
    trusted: inventory.isTrusted(look, first, facts),
    ways: waysTo(look.closure, keyOf(first)),
    provides: { ...providesOf(facts.home) },
    runs: await runsIn(facts, pause),
  }
}

async function runsIn({ home }: Facts, pause: () => Promise<void>): Promise<PackRun[]> {
  return home === undefined ? [] : (await runsOf(home.dir, home.root, pause)).slice(0, MAX_RUNS)
}

/** Every way from the city to a pack, along imports. */
function waysTo(closure: Closure, key: string): PackReason['ways'] {
  const leading = leadingTo(closure, key)
  const ways: PackReason['ways'] = []
  let tries = MAX_TRIES
  const walk = (from: Home | undefined, before: readonly Link[]): void => {
    for (const link of closure.imports.get(from) ?? []) {
      tries -= 1
      if (ways.length >= MAX_WAYS || tries < 0) return
      // Packs may import each other in a circle, which only the loader refuses.
      if (before.includes(link)) continue
      const steps = [...before, link]
      if (keyOf(link) === key) ways.push({ scope: link.entry.scope, steps: steps.map(stepOf) })
      else if (leading.has(link.to)) walk(link.to, steps)
    }
  }
  walk(undefined, [])
  return ways
}

/** The packs from which imports lead to it. */
function leadingTo({ links }: Closure, key: string): ReadonlySet<Home | undefined> {
  const found = new Set<Home | undefined>()
  const open = links.filter((link) => keyOf(link) === key)
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { from } = next
    if (from === undefined || found.has(from)) continue
    found.add(from)
    open.push(...links.filter(({ to }) => to === from))
  }
  return found
}

function stepOf(link: Link): PackReason['ways'][number]['steps'][number] {
  const { name, version, file, line } = link.entry
  return { name, source: shownSource(link), ...(version === '' ? {} : { version }), file, line }
}
