/**
 * Which addresses messages may be posted to (decision 150). It is the address that is looked at, not the name: a name that
 * means another address a moment later is looked at again, for the one that was looked at is the one that is connected to.
 */
import { type LookupAddress, lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { refusalOfAddress } from '../adapters/addresses.ts'

type Resolve = (name: string, done: (error: Error | null, addresses: LookupAddress[]) => void) => void
const resolveName: Resolve = (name, done) => lookup(name, { all: true, verbatim: true }, done)

/** Looks a name up for a connection, and lets none go to an address that is refused. */
export const guardedLookup =
  (resolve: Resolve = resolveName): LookupFunction =>
  (name, options, done) => {
    resolve(name, (error, addresses) => {
      if (error !== null) return done(error, '')
      const allowed = addresses.filter(({ address }) => refusalOfAddress(address) === undefined)
      const [first] = allowed
      const refused = addresses[0] === undefined ? `${name} has no address` : refusalOfAddress(addresses[0].address)
      if (first === undefined) return done(new Error(refused ?? `${name} has no address`), '')
      if (options.all === true) return done(null, allowed)
      done(null, first.address, first.family)
    })
  }
