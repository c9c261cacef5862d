/**
 * What a turn costs by the prices of the city. The first entry whose `model` is that of the turn counts; a kind of token
 * that was used and has no price there leaves the cost unknown.
 */
import type { Pricing } from '../../contract/config-schema.ts'
import { costOf, type Nano, parsePrice } from '../../kernel/money.ts'

export type Prices = readonly { readonly [Key in keyof Pricing]: Pricing[Key] }[]

export interface Tokens {
  readonly input: number
  readonly output: number
  readonly cache_read: number
  readonly cache_write: number
}
const KINDS = ['input', 'output', 'cache_read', 'cache_write'] as const

/** Undefined: nobody knows. */
export function priceOf(prices: Prices, model: string, tokens: Tokens): Nano | undefined {
  const entry = prices.find((one) => isMeant(one.model, model))
  if (entry === undefined) return undefined
  const used = KINDS.filter((kind) => tokens[kind] > 0)
  const parts = used.flatMap((kind) => {
    const price = entry[kind]
    const exact = price === undefined ? undefined : parsePrice(price)
    return exact === undefined ? [] : [{ tokens: tokens[kind], price: exact }]
  })
  return parts.length === used.length ? costOf(parts) : undefined
}

/** `*` stands for any text, case aside; nothing else is special. Linear in the text for each star: no pattern hangs. */
function isMeant(glob: string, model: string): boolean {
  const [first = '', ...rest] = glob.toLowerCase().split('*')
  const text = model.toLowerCase()
  if (rest.length === 0) return text === first
  const last = rest.pop() ?? ''
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false
  let at = first.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at <= text.length - last.length
}
