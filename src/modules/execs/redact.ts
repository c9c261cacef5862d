/**
 * Output without secrets. What a command is given as a variable counts as one where the name says so, and else where it is
 * long and no path: what the configuration hides when it is shown (files/mask.ts) is not told by a command either.
 */
import { MASK } from '../../contract/base/merge-patch.ts'
import { type Environment, expanded } from '../../kernel/processes.ts'
import { isPassedOn } from './environment.ts'
import type { NewExec } from './ports.ts'

const SECRET_NAME =
  /TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|AUTH|COOKIE|APIKEY|DSN|_PWD$|(?:^|_)(?:KEY|PASS|PAT)(?:$|_)/i
/** A shorter one is in every other word. */
const SHORTEST_NAMED = 4
const SHORTEST = 8

/** Longest first: one may be a part of another. */
export function secretsOf({ env, inherit_env }: Pick<NewExec, 'env' | 'inherit_env'>, ambient: Environment): string[] {
  const given = [
    ...Object.entries(env).map(([name, value]) => [name, expanded(value, ambient)] as const),
    ...inherit_env.map((name) => [name, ambient[name] ?? ''] as const),
  ]
  const secret = given.filter(([name, value]) => isSecret(name, value)).map(([, value]) => value)
  // A value of several lines may be told line by line.
  const lines = secret.flatMap((value) => value.split('\n')).filter((line) => line.length >= SHORTEST)
  return [...new Set([...secret, ...lines])].sort((a, b) => b.length - a.length)
}

const isSecret = (name: string, value: string): boolean =>
  SECRET_NAME.test(name)
    ? value.length >= SHORTEST_NAMED
    : value.length >= SHORTEST && !isPassedOn(name) && !/^(?:[~.]{0,2}\/|\w+:\/\/[^@]*$)/.test(value)

const redacted = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((rest, secret) => rest.replaceAll(secret, MASK), text)

/** How much of the end of an output `tailText` wants to see. */
export const bytesFor = (maxBytes: number, secrets: readonly string[]): number => maxBytes + 4 * longestOf(secrets)

const longestOf = (secrets: readonly string[]): number => secrets[0]?.length ?? 0

/** The end of an output as at most `maxBytes` of text; `isWhole`: nothing came before `bytes`. */
export function tailText(bytes: Buffer, secrets: readonly string[], maxBytes: number, isWhole: boolean): string {
  const text = redacted(bytes.toString('utf8').replaceAll('\0', '\uFFFD'), secrets)
  // It may begin with the rest of a secret.
  const encoded = Buffer.from(isWhole ? text : text.slice(longestOf(secrets)))
  let from = Math.max(0, encoded.length - maxBytes)
  // Not in the middle of a character.
  while (from > 0 && ((encoded[from] ?? 0) & 0xc0) === 0x80) from++
  return encoded.subarray(from).toString('utf8')
}
