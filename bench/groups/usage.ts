/** What does the record of a turn cost beside the append of its event? */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { compare, type Group } from '../bench.ts'
import { Child } from '../child.ts'
import type { Row } from '../rows.ts'

export const usage: Group = async ({ quick, dir }) => {
  const rows: Row[] = []
  for (const writers of [1, 100]) {
    const options = { dir: join(dir, `usage-${writers}`), writers, ms: quick ? 500 : 1_500 }
    mkdirSync(options.dir)
    await using ours = new Child('usage')
    await using floor = new Child('usage')
    const rate = (child: Child, command: string) => async () => (await child.ask(command, options))['perSecond'] ?? 0
    const found = await compare(quick ? 3 : 5, rate(ours, 'record'), [rate(floor, 'append')])
    rows.push({
      name: `turns recorded, ${writers} at once`,
      unit: 'turns/s',
      ours: found.ours,
      floor: 'appends of the same event without totals',
      floorValue: found.floors[0] ?? 0,
      ratio: found.ratios[0] ?? 0,
      budget: 'reported',
    })
  }
  return rows
}
