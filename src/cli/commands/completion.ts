/** `svcctl completion`: scripts that ask the program itself what may come next. */
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import { SCRIPTS } from '../completion/scripts.ts'

async function run(context: Context, input: Input): Promise<number> {
  await context.print.raw(SCRIPTS[input.required('shell')] ?? '')
  return EXIT.ok
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['completion'],
    operations: [],
    summary: 'Completion script for a shell',
    description: 'Commands, flags and the names of cities, as the running supervisor knows them.',
    arguments: [{ name: '<shell>', description: 'Which shell.', choices: Object.keys(SCRIPTS) }],
    examples: [
      { line: 'source <(svcctl completion bash)', does: 'for this bash' },
      { line: 'svcctl completion fish > ~/.config/fish/completions/svcctl.fish', does: 'for every fish' },
    ],
    run,
  },
]
