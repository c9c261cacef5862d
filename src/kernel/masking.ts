/**
 * Stars in the place of secrets, byte by byte, so that offsets stay. Secrets are matched by their exact bytes, also where
 * they are cut in two by the parts in which output arrives or is read.
 */

/** A shorter one is in every other word. */
const SHORTEST_SECRET = 4
const STAR = 0x2a

/** Bytes of a secret that may stand before or behind a part of an output. */
export const marginOf = (secrets: readonly Buffer[]): number => Math.max(0, ...secrets.map(({ length }) => length - 1))

/** Masks each secret in `bytes`, in place. */
export function maskAll(bytes: Buffer, secrets: readonly Buffer[]): Buffer {
  for (const secret of secrets) {
    if (secret.length < SHORTEST_SECRET) continue
    for (let at = bytes.indexOf(secret); at >= 0; at = bytes.indexOf(secret, at + secret.length))
      bytes.fill(STAR, at, at + secret.length)
  }
  return bytes
}

/** Masks, in place, the beginning of a secret at the end of `bytes`: its rest is still to come. */
export function maskBegun(bytes: Buffer, secrets: readonly Buffer[]): void {
  for (const secret of secrets) {
    const begun = begunAt(bytes, secret, SHORTEST_SECRET)
    if (begun !== undefined) bytes.fill(STAR, begun)
  }
}

/** Where `bytes` end with the first bytes of a secret, `least` at least and not all of them. */
function begunAt(bytes: Buffer, secret: Buffer, least: number): number | undefined {
  if (secret.length < SHORTEST_SECRET) return undefined
  const start = secret.subarray(0, least)
  const first = Math.max(bytes.length - secret.length + 1, 0)
  for (let at = bytes.indexOf(start, first); at >= 0; at = bytes.indexOf(start, at + 1))
    if (bytes.subarray(at).equals(secret.subarray(0, bytes.length - at))) return at
  return undefined
}

/** So many bytes of a secret are held back until it is known how they go on; fewer give nothing away. */
const HELD_FROM = 6

/** Masks an output as it is written. */
export class StreamMask {
  readonly #secrets: readonly Buffer[]
  /** The beginning of a secret, perhaps: not passed on yet. */
  #held: Buffer = Buffer.alloc(0)
  /** The end of what was passed on, as it came: a secret may have begun there. */
  #passed: Buffer = Buffer.alloc(0)

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets.filter((secret) => secret !== '').map((secret) => Buffer.from(secret))
  }

  /** Bytes are held back: `flush` passes them on. */
  get holds(): boolean {
    return this.#held.length > 0
  }

  /** What of `bytes`, and of those held back before, may be passed on. */
  push(bytes: Buffer): Buffer {
    if (this.#secrets.length === 0) return bytes
    const known = this.#passed.length
    const whole = Buffer.concat([this.#passed, this.#held, bytes])
    const shown = maskAll(Buffer.from(whole), this.#secrets)
    const begun = this.#secrets.map((secret) => begunAt(shown, secret, HELD_FROM)).filter((at) => at !== undefined)
    const end = Math.max(known, Math.min(whole.length, ...begun))
    this.#held = whole.subarray(end)
    this.#remember(whole.subarray(0, end))
    return shown.subarray(known, end)
  }

  /** What was held back, as it is: nothing more has come for a while. The rest of the secret will be masked all the same. */
  flush(): Buffer {
    const out = this.#held
    this.#remember(Buffer.concat([this.#passed, out]))
    this.#held = Buffer.alloc(0)
    return out
  }

  #remember(passed: Buffer): void {
    const margin = marginOf(this.#secrets)
    this.#passed = margin === 0 ? Buffer.alloc(0) : Buffer.from(passed.subarray(-margin))
  }
}

/** `text` with each secret as stars. */
export const maskText = (text: string, secrets: readonly string[]): string =>
  secrets.reduce(
    (rest, secret) => (secret.length < SHORTEST_SECRET ? rest : rest.replaceAll(secret, '*'.repeat(secret.length))),
    text,
  )
