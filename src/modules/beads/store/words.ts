/**
 * The index of words: titles and descriptions for what is typed into searches, labels for filters.
 *
 * W1  `bead_words_upto` says up to which number beads are indexed; what it says and the index are of the same commit. New
 *     beads have greater numbers, so that they need no note of their own: they are indexed in batches, which costs a
 *     fraction of one by one.
 * W2  Whoever looks for words waits for `settle`; then every bead that is committed is indexed. While somebody `follow`s,
 *     each commit indexes what it brings.
 * W3  What is behind is little, but after the migration that made the index anew: then it is caught up with in slices.
 */
import type { Database, Participant, Row, Tx } from '../../../kernel/database.ts'

/** Beads that wait for the next batch at most, while nobody looks for words. */
const BATCH = 512
/** Beads that one commit indexes at most: it holds up everybody for so long. */
const SLICE = 512

export interface WordsOf {
  readonly title: string
  readonly description: string | null
  readonly labels: readonly string[]
}

const INSERT = 'INSERT INTO bead_words (rowid, title, description, labels) VALUES (?, ?, ?, ?)'
const DELETE = 'DELETE FROM bead_words WHERE rowid IN (SELECT value FROM json_each(?))'
const NEXT = `SELECT n, title, description, labels FROM beads WHERE n > ? ORDER BY n LIMIT ${SLICE}`
const UPTO = 'SELECT n FROM bead_words_upto'

/** Scripts that put no space between words: each letter of theirs is a word, and a word of theirs is a phrase. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Bopomofo}\u30fc\uff70]/gu
/** None of them is below; most texts have none, and that is soon known. */
const MAY_BE_UNSPACED = /[\u1100-\uffff]/

/** The text as it is indexed, and as it is looked for. */
export const segmented = (text: string): string =>
  MAY_BE_UNSPACED.test(text) ? text.replaceAll(UNSPACED, ' $& ') : text

/** The word is a letter that stands for itself. */
export const isUnspaced = (word: string): boolean => segmented(word) === ` ${word} `

/** The word that stands for a label: any label is one, and no two are the same. */
export const labelWord = (label: string): string => Buffer.from(label).toString('hex')

export class WordIndex implements Participant {
  readonly #db: Pick<Database, 'get' | 'write'>
  /** Beads up to this number are indexed. */
  #upTo: number
  /** No bead has a greater number. */
  #last: number
  #wanted = false
  #followers = 0

  constructor(db: Pick<Database, 'get' | 'write'>) {
    this.#db = db
    this.#upTo = Number(db.get(UPTO)?.n ?? 0)
    this.#last = Number(db.get('SELECT max(n) AS n FROM beads')?.n ?? 0)
  }

  came(tx: Tx, n: number, bead: WordsOf): void {
    // The number of a bead that went can come again.
    if (n <= this.#upTo) insertWords(tx, n, bead)
    else this.#last = Math.max(this.#last, n)
  }

  changed(tx: Tx, n: number, bead: WordsOf): void {
    if (n > this.#upTo) return
    tx.run(DELETE, JSON.stringify([n]))
    insertWords(tx, n, bead)
  }

  went(tx: Tx, numbers: readonly number[]): void {
    const indexed = numbers.filter((n) => n <= this.#upTo)
    if (indexed.length > 0) tx.run(DELETE, JSON.stringify(indexed))
  }

  /** Resolves once every bead that is there is indexed. */
  async settle(): Promise<void> {
    while (this.#last > this.#upTo) {
      this.#wanted = true
      await this.#db.write(() => undefined)
    }
  }

  /** Until it is disposed of, no commit leaves anything unindexed (W2). */
  follow(): Disposable {
    this.#followers++
    return { [Symbol.dispose]: () => this.#followers-- }
  }

  mark(): number {
    return this.#upTo
  }

  undo(mark: number): void {
    this.#upTo = mark
  }

  beforeCommit(tx: Tx): void {
    const due = this.#last - this.#upTo
    if (due <= 0 || !(this.#wanted || this.#followers > 0 || due >= BATCH)) return
    this.#wanted = false
    const rows = tx.all(NEXT, this.#upTo)
    for (const row of rows) insertWords(tx, Number(row.n), wordsOf(row))
    this.#upTo = Number(rows.at(-1)?.n ?? this.#upTo)
    // Less than a slice is all there is, whatever was undone meanwhile.
    if (rows.length < SLICE) this.#last = this.#upTo
    tx.run('UPDATE bead_words_upto SET n = ?', this.#upTo)
  }

  committed(): void {}
}

const wordsOf = ({ title, description, labels }: Row): WordsOf => ({
  title: String(title),
  description: description === null ? null : String(description),
  labels: labels === '[]' ? [] : JSON.parse(String(labels)),
})

function insertWords(tx: Tx, n: number, { title, description, labels }: WordsOf): void {
  tx.run(INSERT, n, segmented(title), segmented(description ?? ''), labels.map(labelWord).join(' '))
}
