/** Text of IRC: what is markup in it, whom it speaks to, and which names are the same. */

/** Colours with their numbers; bold, italics and the like are single controls. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are the markup.
const COLOURS = /\u0003(?:\d{1,2}(?:,\d{1,2})?)?|\u0004(?:[0-9a-fA-F]{6}(?:,[0-9a-fA-F]{6})?)?/g
const CONTROLS = /[\p{Cc}--\t]/gv

export const withoutFormatting = (text: string): string => text.replaceAll(COLOURS, '').replaceAll(CONTROLS, '')

/** `\u0001ACTION waves\u0001`; the end may be missing. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is how such requests are marked.
const CTCP = /^\u0001([^\u0001 ]*)(?: ([^\u0001]*))?\u0001?$/

/** Requests of clients to clients. Only an action is something said. */
export function ctcpIn(text: string): { readonly name: string; readonly rest: string } | undefined {
  const [, name, rest = ''] = CTCP.exec(text) ?? []
  return name === undefined ? undefined : { name: name.toUpperCase(), rest }
}

/** What stands before a colon at the beginning, or behind an @: whom the line speaks to. */
const ADDRESSED =
  /^(?:@([\p{L}\p{N}][\p{L}\p{N}_./-]{0,63})(?=[\s:,]|$)[:,]?|([\p{L}\p{N}][\p{L}\p{N}_./-]{0,63}):(?=\s|$))\s*/u

/** `mayor: is it done?` speaks to mayor; after the bridge's own name too. */
export function addressedIn(text: string, isOwn: (name: string) => boolean): string | undefined {
  const [whole = '', at, colon] = ADDRESSED.exec(text) ?? []
  const name = at ?? colon
  if (name === undefined) return undefined
  return isOwn(name) ? addressedIn(text.slice(whole.length), () => false) : name.toLowerCase()
}

/** Which letters are the same in names of this server (ISUPPORT CASEMAPPING). */
export function folded(name: string, mapping: string): string {
  const lower = name.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
  if (mapping === 'ascii') return lower
  const brackets = lower.replaceAll('[', '{').replaceAll(']', '}').replaceAll('\\', '|')
  return mapping === 'strict-rfc1459' ? brackets : brackets.replaceAll('^', '~')
}

const NICK = /^[\p{L}_[\]\\`^{|}][\p{L}\p{N}_[\]\\`^{|}-]{0,63}$/u
/** Services take orders in private messages: what an agent says must never be one. */
const SERVICE = /serv$/i

/** Somebody to whom one may speak in private. */
export const isPerson = (nick: string): boolean => NICK.test(nick) && !SERVICE.test(nick)

export const isChannelName = (name: string): boolean => /^[#&+!][^\s,:\p{Cc}]{1,63}$/u.test(name)
