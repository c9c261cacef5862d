/** Text with the few marks of our descriptions as requests of man(7). */

const MOST_COLUMNS = 79

/** A word or sentence of running text: `code` is bold, links are their text. */
function inline(text: string): string {
  const plain = text.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')
  const parts = plain.split(/`([^`]+)`/)
  return parts.map((part, at) => (at % 2 === 1 ? bold(part) : escaped(part))).join('')
}

export const bold = (text: string): string => `\\fB${escaped(text)}\\fR`

/** Hyphens are those that one can copy; a line cannot be taken for a request. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^([.'])/gm, '\\&$1')
}

/** A paragraph of text, in lines that are short enough for `mandoc -Tlint`. */
export function line(text: string): string {
  const lines: string[] = []
  for (const word of inline(text).split(/\s+/)) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < MOST_COLUMNS) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(/^[.']/.test(word) ? `\\&${word}` : word)
  }
  return lines.join('\n')
}

export const section = (title: string, ...body: readonly string[]): string => [`.SH ${title}`, ...body].join('\n')

export const subsection = (title: string, ...body: readonly string[]): string =>
  [`.SS "${escaped(title).replaceAll('"', '\\(dq')}"`, ...body].join('\n')

/** A word and what it means, indented. */
export const tagged = (tag: string, text: string): string => `.TP\n${bold(tag)}\n${line(text)}`

export const paragraph = (text: string): string => `.PP\n${line(text)}`

/** Lines as they are. */
export const verbatim = (lines: readonly string[]): string =>
  ['.PP', '.nf', '.RS 4', ...lines.map((one) => escaped(one)), '.RE', '.fi'].join('\n')

export function manual(
  name: string,
  number: number,
  version: string,
  summary: string,
  parts: readonly string[],
): string {
  return [
    `.\\" Made by npm run generate.`,
    `.TH "${name.toUpperCase().replaceAll('-', '\\-')}" "${number}" "" "svcctl ${version}" "svcctl"`,
    section('NAME', `${escaped(name)} \\- ${inline(summary)}`),
    ...parts,
    '',
  ].join('\n')
}
