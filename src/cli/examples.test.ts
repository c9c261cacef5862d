/** Every example of every help can be typed. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { describedCommands } from './describe.ts'
import { TOPICS } from './help-topics.ts'
import { parseWords } from './parse.ts'

const COLUMNS = 80

/** The commands of a line of shell: its words, without what is behind a comment, a redirection, or in front as a variable. */
function commandsOf(line: string): readonly (readonly string[])[] {
  const commands: string[][] = [[]]
  const tokens = line.matchAll(/\s*(?:(#.*$)|(&&|\|\||[|;&])|([<>]+\s*\S+)|((?:'[^']*'|"[^"]*"|\\.|[^\s|;&<>])+))/g)
  for (const [, comment, separator, redirection, word] of tokens) {
    if (comment !== undefined) break
    if (separator !== undefined) commands.push([])
    else if (redirection === undefined && word !== undefined) commands.at(-1)?.push(unquoted(word))
  }
  return commands.map((words) => words.slice(words.findIndex((word) => !/^[A-Z_]+=/.test(word))))
}

const unquoted = (word: string): string => word.replaceAll(/'([^']*)'|"([^"]*)"|\\(.)/g, '$1$2$3')

const tooWide = (text: string) => text.split('\n').filter((line) => line.length > COLUMNS && !line.includes('svcctl '))

test('the help of every command fits into a terminal, but for lines that are there to be copied', async () => {
  for (const { command } of await describedCommands()) {
    const parsed = await parseWords([...command.split(' ').slice(1), '--help'], COLUMNS)
    assert.equal(parsed.kind, 'help')
    assert.deepEqual(parsed.kind === 'help' ? tooWide(parsed.text) : [], [], command)
  }
  for (const [topic, text] of Object.entries(TOPICS)) assert.deepEqual(tooWide(text(COLUMNS)), [], topic)
})

suite('the examples of the help can be typed', async () => {
  for (const { command, examples } of await describedCommands()) {
    test(command, async () => {
      const lines = examples.flatMap(({ line }) => commandsOf(line)).filter(([program]) => program === 'svcctl')
      assert.ok(lines.length > 0, `${command} has no example`)
      const meant = await Promise.all(
        lines.map(async ([, ...words]) => {
          const parsed = await parseWords(words, COLUMNS)
          assert.equal(parsed.kind, 'run', words.join(' '))
          return parsed.kind === 'run' ? `svcctl ${parsed.command.path.join(' ')}` : ''
        }),
      )
      assert.ok(meant.includes(command), `${meant.join(', ')} is not ${command}`)
    })
  }
})
