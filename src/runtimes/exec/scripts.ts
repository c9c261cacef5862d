/**
 * What runs a command: two shells and `cat`, which need little memory and no supervisor. They use positional parameters
 * only: an assignment would change a variable of the same name that the command inherits.
 */

/** Of output; whoever writes on gets SIGPIPE. */
export const MAX_OUTPUT_BYTES = 64 * 1024 * 1024
/** One more than the limit, so that the size tells who went past it. */
const OUTPUT_BLOCKS = MAX_OUTPUT_BYTES / 512 + 1

/**
 * Claims the start, runs the command, records its status. Only the command has its id in the environment: what watches over it
 * is none of the processes that are ended with it. Links are made at once with what they
 * say, or not at all.
 */
const RUN = `
trap : HUP INT TERM
svc_boot= svc_stat=
read -r svc_boot </proc/sys/kernel/random/boot_id
read -r svc_stat </proc/$$/stat || svc_stat=$(ps -o lstart= -p $$)
"$5" -s "$$|$PPID|$svc_boot|$svc_stat" "$1/claim.$2" || exit 0
if [ -n "$6" ]
then SVC_EXEC_ID=$3 "$6" "--locks=$7:" /bin/sh -c -- "$4" 2>&1
else SVC_EXEC_ID=$3 /bin/sh -c -- "$4" 2>&1
fi
"$5" -s "$?" "$1/status.$2"
`

/** Keeps the pipe between the command and its output: what collects is not in the command's reach, and has a limit. */
const HOLD = `
/bin/sh -c "$1" svc-exec "$2" "$3" "$4" "$5" "$6" "$8" "$9" 2>/dev/null | (
  trap '' HUP INT TERM
  ulimit -c 0
  ulimit -f ${OUTPUT_BLOCKS}
  exec "$7" >>"$2/output.$3"
) 2>/dev/null
`

export interface WrapperTools {
  readonly ln: string
  readonly cat: string
  /** Empty where the system has none. */
  readonly prlimit: string
}

export interface Wrapped {
  readonly directory: string
  readonly number: number
  readonly id: string
  readonly mark: string
  readonly command: string
}

/** Arguments of /bin/sh. */
export const wrapperArgs = (
  { directory, number, id, mark, command }: Wrapped,
  { ln, cat, prlimit }: WrapperTools,
): readonly string[] => ['-c', HOLD, 'svc-exec', RUN, directory, `${number}`, id, command, ln, cat, prlimit, mark]
