/**
 * Which settings of a repository's own configuration git may see.
 *
 * Whoever can write to a repository can write its configuration, and that can name programs: filters, merge and diff
 * drivers, monitors, hooks, credential helpers, ssh commands, pagers, aliases. New versions of git bring more of them.
 * So settings are chosen by name, and a setting that is not listed here is not seen.
 */
export interface Setting {
  /** As `git config --list` prints it: section and name in lower case, the part between as it is written. */
  readonly name: string
  readonly value: string
}

const HARMLESS: readonly RegExp[] = [
  /^core\.(?:repositoryformatversion|filemode|symlinks|ignorecase|precomposeunicode|protecthfs|protectntfs)$/,
  /^core\.(?:autocrlf|eol|safecrlf|sparsecheckout|sparsecheckoutcone|logallrefupdates|excludesfile|longpaths)$/,
  // Git refuses a repository with an extension that it does not know, and must be able to.
  /^extensions\.(?!worktreeconfig$)/,
  /^remote\..*\.(?:url|fetch|promisor|partialclonefilter)$/s,
  /^branch\..*\.(?:remote|merge)$/s,
]

/** What `git lfs install` writes: programs of the host, found on the supervisor's PATH. */
const LFS: Readonly<Record<string, RegExp>> = {
  'filter.lfs.clean': /^git-lfs clean -- %f$/,
  'filter.lfs.smudge': /^git-lfs smudge (?:--skip )?-- %f$/,
  'filter.lfs.process': /^git-lfs filter-process(?: --skip)?$/,
  'filter.lfs.required': /^true$/,
}

export const isHarmless = ({ name, value }: Setting): boolean =>
  HARMLESS.some((pattern) => pattern.test(name)) || LFS[name]?.test(value) === true

/** Names of filters that a repository must have applied and whose programs are not run. */
export const requiredFilters = (settings: readonly Setting[]): readonly string[] =>
  settings
    .filter((setting) => /^filter\..*\.required$/s.test(setting.name) && !isHarmless(setting))
    .filter(({ value }) => /^(?:true|yes|on|1|)$/i.test(value))
    .map(({ name }) => name.slice('filter.'.length, -'.required'.length))

/** Reads `git config --list -z`. */
export const parseSettings = (text: string): readonly Setting[] =>
  text
    .split('\0')
    .filter((entry) => entry !== '')
    .map((entry) => {
      const end = entry.indexOf('\n')
      // A name alone is a switch that is on.
      return end < 0 ? { name: entry, value: 'true' } : { name: entry.slice(0, end), value: entry.slice(end + 1) }
    })

/** Text of a configuration file with exactly these settings. */
export const settingsText = (settings: readonly Setting[]): string => settings.map(oneSetting).join('')

function oneSetting({ name, value }: Setting): string {
  const section = name.slice(0, name.indexOf('.'))
  const key = name.slice(name.lastIndexOf('.') + 1)
  const between = name.slice(section.length + 1, -(key.length + 1))
  const header = between === '' ? `[${section}]` : `[${section} "${between.replace(/["\\]/g, '\\$&')}"]`
  const written = value.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t')
  return `${header}\n\t${key} = "${written}"\n`
}
