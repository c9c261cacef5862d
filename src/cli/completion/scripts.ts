/**
 * What a shell runs at a Tab: it asks the program. The program answers with a candidate a line, a tab and a description
 * behind it, or with `:files`.
 */

/**
 * Bash takes `=` and `:` for ends of words (COMP_WORDBREAKS) and replaces only what comes after them. What stands together
 * on the line is put together again, and what bash would not replace is taken off the candidates.
 */
const BASH = `# svcctl completion for bash:  source <(svcctl completion bash)
_svcctl() {
  local IFS=$'\\n' rest=\${COMP_LINE:0:COMP_POINT} trimmed word line breaks= kept= at=-1 i
  local -a words=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    trimmed=\${rest#"\${rest%%[![:space:]]*}"}
    word=\${COMP_WORDS[i]}
    ((i < COMP_CWORD)) || word=$trimmed
    if ((i > 0)) && [[ $trimmed == "$rest" ]]; then words[at]+=$word; else words[++at]=$word; fi
    rest=\${trimmed#"$word"}
  done
  [[ $COMP_WORDBREAKS == *=* ]] && breaks+==
  [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
  word=\${words[at]}
  [[ -n $breaks ]] && kept=\${word%"\${word##*[$breaks]}"}
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o filenames 2>/dev/null
      COMPREPLY+=($(compgen -f -- "\${word#"$kept"}"))
      continue
    fi
    line=\${line%%$'\\t'*}
    [[ $line == *= ]] && compopt -o nospace 2>/dev/null
    printf -v line %q "\${line#"$kept"}"
    COMPREPLY+=("\${line//\\\\=/=}")
  done < <(svcctl __complete "\${words[@]:1}" 2>/dev/null)
}
complete -F _svcctl svcctl
`

const ZSH = `#compdef svcctl
# svcctl completion for zsh:  source <(svcctl completion zsh)
_svcctl() {
  local line word files
  local -a found open
  while IFS= read -r line; do
    word=\${\${line%%$'\\t'*}//:/\\\\:}
    if [[ $line == :files ]]; then files=1
    elif [[ $word == *= ]]; then open+=("$word:\${line#*$'\\t'}")
    elif [[ $line == *$'\\t'* ]]; then found+=("$word:\${line#*$'\\t'}")
    else found+=("$word"); fi
  done < <(svcctl __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if [[ -n $files ]]; then
    [[ $PREFIX == --*=* ]] && compset -P '*='
    _files
    return
  fi
  (( \${#found} )) && _describe -t svcctl svcctl found
  (( \${#open} )) && _describe -t svcctl svcctl open -S ''
}
if [ "$funcstack[1]" = "_svcctl" ]; then _svcctl "$@"; else compdef _svcctl svcctl; fi
`

const FISH = `# svcctl completion for fish:  svcctl completion fish | source
function __svcctl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -e words[1]
    for line in (svcctl __complete $words "$current" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (string replace -r '^--[a-z-]+=' '' -- "$current")
        else
            printf '%s\\n' $line
        end
    end
end
complete -c svcctl -f -a '(__svcctl_complete)'
`

export const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH, zsh: ZSH, fish: FISH }
