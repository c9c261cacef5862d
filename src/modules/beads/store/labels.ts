/**
 * Labels, as the row has them: a sorted set as JSON. Whether one is among them is seen in that text, which the indexes of
 * lists hold; no table has to be written for it.
 */

/** SQL of a condition on `b` and the values of its question marks. */
interface Test {
  readonly text: string
  readonly values: readonly string[]
}

/**
 * The label is among those of `b`. A quote that is not escaped and stands behind a bracket or a comma begins a label, but
 * for one that ends a label whose last character is one of those: only the label `,` can be taken for what stands between
 * two others, and is looked for among the values.
 */
export function labelTest(label: string): Test {
  if (label === ',') return { text: 'EXISTS (SELECT 1 FROM json_each(b.labels) WHERE value = ?)', values: [label] }
  const quoted = JSON.stringify(label.toWellFormed())
  // Most beads do not have it at all, and one look says so.
  return {
    text: 'instr(b.labels, ?) > 0 AND (instr(b.labels, ?) > 0 OR instr(b.labels, ?) > 0)',
    values: [quoted, `[${quoted}`, `,${quoted}`],
  }
}

/** The same of a label that the service itself gives a meaning, as SQL without values. */
export function hasLabel(label: string): string {
  const { text, values } = labelTest(label)
  return values.reduce((sql, value) => sql.replace('?', () => `'${value.replaceAll("'", "''")}'`), text)
}
