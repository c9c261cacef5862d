/** Text as one word, for tmux's command parser and for a shell; the rules of single quotes are the same. */

/** Between the quotes nothing has a meaning; a quote itself goes outside. A line break would end the command. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** For arguments that tmux expands as a format: `#` stands for itself. (`#[` cannot be written at all.) */
export const literal = (text: string) => text.replaceAll('#', '##')

/** For arguments that it expands as a format and as a time: `%`, too. */
export const timeless = (text: string) => literal(text).replaceAll('%', '%%')
