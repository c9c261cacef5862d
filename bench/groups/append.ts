/** How fast can a writer append durably, without HTTP? */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { compare, type Group } from '../bench.ts'
import { Child } from '../child.ts'
import type { Row } from '../rows.ts'

export const append: Group = async ({ quick, dir }) => {
  const rows: Row[] = []
  for (const writers of [1, 64, 1_000]) {
    const options = { dir: join(dir, `append-${writers}`), writers, ms: quick ? 500 : 1_500 }
    mkdirSync(options.dir)
    await using ours = new Child('append')
    await using bare = new Child('append')
    const rate = (child: Child, command: string) => async () => (await child.ask(command, options))['perSecond'] ?? 0
    const found = await compare(quick ? 3 : 5, rate(ours, 'ours'), [rate(bare, 'bare')])
    const ratio = found.ratios[0] ?? 0
    rows.push({
      name: `append in-process, ${writers} at once`,
      unit: 'events/s',
      ours: found.ours,
      floor: 'bare better-sqlite3, same inserts and group size',
      floorValue: found.floors[0] ?? 0,
      ratio,
      budget: 'reported',
    })
  }
  return rows
}
