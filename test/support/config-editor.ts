/** A process that edits three files of a city together, over and over, until it is killed: prints each number that was acknowledged. */
import { systemClock } from '../../src/kernel/clock.ts'
import { openEditedCity } from './edited-city.ts'

const [dir = '', from = '1'] = process.argv.slice(2)
const { service } = await openEditedCity(dir, systemClock)
process.stdout.write('ready\n')
for (let n = Number(from); ; n++) {
  await service.edit({
    actor: 'test',
    change: (files) => {
      files.set('city.toml', `# ${n}\n[workspace]\nprovider = "shell"\n[providers.shell]\nbase = "builtin:shell"\n`)
      files.set('pack.toml', `# ${n}\n[pack]\nname = "edited"\nschema = 2\n`)
      files.set(`agents/a${n % 2}/agent.toml`, `# ${n}\nprovider = "shell"\n`)
      files.delete(`agents/a${(n + 1) % 2}/agent.toml`)
    },
  })
  process.stdout.write(`${n}\n`)
}
