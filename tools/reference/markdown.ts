/** Pieces of the pages of `docs/reference`. */

export function codeList(codes: readonly string[]): string {
  return codes.map((code) => `\`${code}\``).join(', ')
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

export function page(title: string, intro: string, sections: readonly string[]): string {
  const note = '<!-- Made by `npm run generate`. -->'
  return `${[note, `# ${title}`, intro, ...sections].join('\n\n')}\n`
}

/** Where a link to a heading leads, as hosts of Markdown make it. */
export const anchor = (heading: string): string =>
  `#${heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')}`
