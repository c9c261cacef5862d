/** bash, as the conformance suite wants its programs. The quotes keep what is echoed apart from what is printed. */
import type { ConformingProgram } from '../runtimes/conformance.ts'

const split = (text: string) => `${text.slice(0, 1)}''${text.slice(1)}`
const say = (text: string) => `echo '${split(text)}'`
const CHILD = `(trap '' TERM HUP; while :; do sleep 600; done) & echo 'c''hild of' $!`

const SHELL: Omit<ConformingProgram, 'launch' | 'busy'> = {
  say,
  exit: (code) => `exit ${code}`,
  flood: (bytes) => `head -c ${bytes} /dev/zero | tr '\\0' x; ${say('end of flood')}`,
  longLine: (bytes) => `head -c ${bytes} /dev/zero | tr '\\0' y; ${say('end of line')}`,
  oddBytes: `printf '\\377\\376\\200'; ${say('end of bytes')}`,
  stubborn: CHILD,
}
const BASH = { command: 'bash', args: ['--norc', '--noprofile'] }

export const terminalShell: ConformingProgram = {
  ...SHELL,
  launch: { ...BASH, io: 'pty' },
  // Said by the program that is to be interrupted: bash itself loses an interrupt that comes while it starts one.
  busy: `sh -c "${say('busy')}; exec sleep 600"`,
}

export const pipedShell: ConformingProgram = { ...SHELL, launch: { ...BASH, io: 'pipes' } }
