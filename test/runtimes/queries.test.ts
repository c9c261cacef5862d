// Programs that ask their terminal are answered by the host, though nobody is attached and no supervisor looks.
import { suite, test } from 'node:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { createSubprocessRuntime } from '../../src/runtimes/subprocess.ts'
import { soon, TestCity } from './conformance.ts'

const newCity = () =>
  new TestCity((city) =>
    createSubprocessRuntime({ clock: systemClock, env: { ...process.env, XDG_RUNTIME_DIR: city }, home: city }),
  )

/** Asks each question when the one before was answered, and prints what it was told. */
const ASKER = `
const questions = ['[c', '[5n', '[2;4H\\u001b[6n', ']10;?\\u0007', ']11;?\\u001b\\\\']
let answers = ''
process.stdin.setRawMode(true)
process.stdin.on('data', (bytes) => {
  answers += bytes
  if (questions.length > 0) ask()
  else console.log('told ' + answers.replaceAll('\\u001b', 'ESC').replaceAll('\\u0007', 'BEL') + ' over')
})
const ask = () => process.stdout.write('\\u001b' + questions.shift())
ask()
`

suite('questions to a terminal', () => {
  test('what it is, whether it is well, where its cursor stands and its colours are answered', async () => {
    await using city = newCity()
    const spec = city.spec({ command: process.execPath, args: ['-e', ASKER], io: 'pty', delivery: 'tui' })
    await city.runtime().start(spec, soon())
    await city.printed(
      spec,
      'told ESC[?1;2cESC[0nESC[2;4RESC]10;rgb:cccc/cccc/ccccBELESC]11;rgb:0000/0000/0000ESC\\ over',
    )
  })

  test('a shell is not typed an answer that would stand in its next line', async () => {
    await using city = newCity()
    const spec = city.spec({ command: 'bash', args: ['--norc', '--noprofile'], io: 'pty', delivery: 'line' })
    const agent = await city.runtime().start(spec, soon())
    await agent.deliver({ seq: 1, id: 'one', text: "printf '\\033[c\\033[6n'; echo asked=$?" }, soon())
    await city.printed(spec, 'asked=0')
    await agent.deliver({ seq: 2, id: 'two', text: 'echo "next is" fine' }, soon())
    await city.printed(spec, 'next is fine')
  })
})
