/** `svcctl completion`: scripts that ask the program itself what may come next. */
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'

const BASH = `# svcctl completion for bash:  source <(svcctl completion bash)
_svcctl() {
  local IFS=$'\\n' line
  COMPREPLY=()
  while read -r line; do
    COMPREPLY+=("$(printf '%q' "\${line%%$'\\t'*}")")
  done < <(svcctl __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _svcctl svcctl
`

const ZSH = `#compdef svcctl
# svcctl completion for zsh:  source <(svcctl completion zsh)
_svcctl() {
  local line
  local -a found
  while IFS= read -r line; do
    found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done < <(svcctl __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#found} )); then _describe -t svcctl svcctl found; else _files; fi
}
if [ "$funcstack[1]" = "_svcctl" ]; then _svcctl "$@"; else compdef _svcctl svcctl; fi
`

const FISH = `# svcctl completion for fish:  svcctl completion fish | source
function __svcctl_complete
  set -l words (commandline -opc) (commandline -ct)
  svcctl __complete $words[2..-1] 2>/dev/null
end
complete -c svcctl -a '(__svcctl_complete)'
`

const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH, zsh: ZSH, fish: FISH }

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
    arguments: [{ name: '<shell>', description: 'Which shell.', choices: ['bash', 'zsh', 'fish'] }],
    examples: [
      { line: 'source <(svcctl completion bash)', does: 'for this bash' },
      { line: 'svcctl completion fish > ~/.config/fish/completions/svcctl.fish', does: 'for every fish' },
    ],
    run,
  },
]
