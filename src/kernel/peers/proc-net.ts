/** Sockets out of /proc/net/tcp and tcp6: the whole table in one read, which takes milliseconds. */
import { openSync, readSync } from 'node:fs'
import { endianness } from 'node:os'
import { addressBytes, type Holder, type Side, type SocketTable, stateOf } from './sockets.ts'

const FILES = ['/proc/net/tcp', '/proc/net/tcp6'] as const
const HEADER = /^\s*sl\s+local_address/
const MAPPED = hexWords(Buffer.from('00000000000000000000ffff', 'hex'))
let room = Buffer.alloc(256 * 1024)

/** Undefined where there are no such files. */
export function openProcTable(files: readonly string[] = FILES): SocketTable | undefined {
  // Left open: a server that is out of descriptors still knows who asks.
  const open = files.flatMap((file) => {
    try {
      return [openSync(file, 'r')]
    } catch {
      return []
    }
  })
  const [first] = open
  if (first === undefined || !HEADER.test(readWhole(first))) return undefined
  return {
    holders: (sides) => {
      const tables = open.map(readWhole)
      return sides.map((side) => keysOf(side).flatMap((key) => tables.flatMap((table) => rowOf(table, key)))[0])
    },
  }
}

/** From the start, in one go: the kernel makes the text while it is read. */
function readWhole(file: number): string {
  let length = 0
  for (;;) {
    const read = readSync(file, room, length, room.length - length, length)
    if (read === 0) return room.toString('latin1', 0, length)
    length += read
    if (length === room.length) room = Buffer.concat([room, Buffer.alloc(room.length)])
  }
}

/** As its row begins: an IPv4 connection may stand among those of IPv6, under addresses that say so. */
function keysOf({ local, remote }: Side): readonly string[] {
  const [address, peer] = [addressBytes(local.address), addressBytes(remote.address)]
  if (address === undefined || peer === undefined) return []
  if (remote.port === 0) return listening(address, local.port)
  const key = (prefix: string) =>
    `${prefix}${hexWords(address)}:${hexPort(local.port)} ${prefix}${hexWords(peer)}:${hexPort(remote.port)} `
  return address.length === 4 ? [key(''), key(MAPPED)] : [key('')]
}

/** Who listens at this address, or at all addresses. */
function listening(address: Buffer, port: number): readonly string[] {
  const [nobody4, nobody6] = [hexWords(Buffer.alloc(4)), hexWords(Buffer.alloc(16))]
  const key = (at: string, nobody: string) => `${at}:${hexPort(port)} ${nobody}:0000 `
  const own =
    address.length === 4
      ? [key(hexWords(address), nobody4), key(`${MAPPED}${hexWords(address)}`, nobody6), key(nobody4, nobody4)]
      : [key(hexWords(address), nobody6)]
  return [...own, key(nobody6, nobody6)]
}

/** Words of 32 bits as numbers of this processor. */
function hexWords(bytes: Buffer): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 4) {
    const word = endianness() === 'LE' ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)
    text += word.toString(16).toUpperCase().padStart(8, '0')
  }
  return text
}

const hexPort = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0')

/** `sl: local remote st tx:rx tr:when retransmits uid timeout inode …`. */
function rowOf(table: string, key: string): readonly Holder[] {
  // With the blank before it: an address may be the end of a longer one.
  const at = table.indexOf(` ${key}`)
  if (at < 0) return []
  const end = table.indexOf('\n', at)
  const [state = '', queues = '', , , uid, , inode] = table
    .slice(at + 1 + key.length, end < 0 ? table.length : end)
    .trim()
    .split(/\s+/)
  if (uid === undefined || inode === undefined) return []
  // `tx:rx`: bytes that wait to be taken by the other end, and those that came from it.
  const unsent = Number.parseInt(queues, 16)
  return [{ uid: Number(uid), inode: Number(inode), unsent, ...stateOf(Number.parseInt(state, 16)) }]
}
