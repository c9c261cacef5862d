/** Handlers of the rigs family (sheet 07 §8.5). */

import type { AsyncAcceptedResponse } from '../../contract/base/accepted.ts'
import type { PatchBody } from '../../contract/base/merge-patch.ts'
import type { RigCreateRequest, RigInfo, rigOperations } from '../../contract/rigs.ts'
import { plainTable } from '../../files/configuration.ts'
import { defineHandlers, ok, type Reply } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Tx } from '../../kernel/database.ts'
import { checkPrecondition } from '../../kernel/etag.ts'
import type { IdempotencyClaim } from '../../kernel/idempotency.ts'
import { invalidField, problem } from '../../kernel/problem.ts'
import { waitForChange } from '../../kernel/waiting.ts'
import { addRig, changeRig, removeReferrers, removeRig } from './files.ts'
import type { GitFacts } from './git-facts.ts'
import { readOverride, writeOverride } from './overrides.ts'
import { isThere, makeDirectory, placeRig, type RigPlace } from './place.ts'
import { CLONES, cloneInput } from './provision.ts'
import {
  findRig,
  needRig,
  type RigCity,
  type RigFiles,
  type RigsView,
  type RigView,
  rigInfo,
  rigRevision,
} from './rigs.ts'

export interface RigHandlersDeps<View> extends RigFiles<View> {
  readonly clock: Clock
  readonly git: Pick<GitFacts, 'of' | 'observe'>
  /** The normal form of a source that may be cloned; refuses any other. */
  readonly checkSource: (url: string) => string
}

const isRelevant = ({ type }: { readonly type: string }): boolean =>
  type.startsWith('rig.') || type.startsWith('agent.') || type.startsWith('session.') || type === 'config.reloaded'

export function createRigHandlers<View extends RigsView>(deps: RigHandlersDeps<View>) {
  const { clock, git } = deps
  type City = RigCity<View>
  const info = (city: City, config: View, name: string, withGit = false): RigInfo => {
    const { path } = needRig(config, name)
    return rigInfo(deps, city, config, name, withGit && path !== undefined ? git.of(path) : undefined)
  }
  const revision = (city: City, config: View, name: string) => rigRevision(deps, city, config, name)
  const headers = (city: City, tag: string) => ({ ETag: `"${tag}"`, 'X-SVC-Index': String(city.store.log.head) })
  const answer = (city: City, item: RigInfo, status = 200): Reply<RigInfo> => ({
    status,
    body: item,
    headers: headers(city, item.revision),
  })

  /** The headers of an answer that may be a stored one, of which only the body is kept. */
  const tagged = async <B extends RigInfo | AsyncAcceptedResponse>(
    city: City,
    replying: Promise<Reply<B>>,
  ): Promise<Reply<B>> => {
    const { status, body } = await replying
    return {
      status,
      body,
      headers: headers(city, 'revision' in body ? body.revision : city.config.current().revision),
    }
  }

  const createHere = async (
    city: City,
    { name, path, git_url: _url, ...fields }: RigCreateRequest,
    ifMatch: string | undefined,
    claim: IdempotencyClaim | undefined,
    actor: string,
  ): Promise<Reply<RigInfo>> => {
    if (path === undefined) throw invalidField('body.path', 'is required without `git_url`')
    refuseTaken(city.config.current(), name)
    const place = placeRig(city.directory, path)
    const takeBack = place.inCity === undefined ? () => {} : makeDirectory(place.directory)
    try {
      const observed = fields.default_branch === undefined ? await git.observe(place.directory) : undefined
      const branch = observed === undefined || observed.branch === '' ? {} : { default_branch: observed.branch }
      const outcome = await city.config.edit({
        ifMatch,
        actor,
        claim,
        reply: ({ config }) => answer(city, info(city, config, name), 201),
        change: (files) => {
          const current = city.config.current()
          refuseTaken(current, name)
          addRig(deps.tree(files), name, place, plainTable({ ...branch, ...fields }), current.default_rig_imports)
        },
        events: () => [{ type: 'rig.created', actor, subject: name, payload: { rig: name, changed: [] } }],
        // Of a rig of this name that somebody removed from the files by hand.
        alsoWrite: (tx) => writeOverride(tx, name, undefined, clock.now()),
      })
      return answer(city, info(city, outcome.config, name), 201)
    } catch (error) {
      takeBack()
      throw error
    }
  }

  const changeIn = (
    city: City,
    files: Parameters<typeof deps.tree>[0],
    name: string,
    fields: PatchBody,
    place: RigPlace | null | undefined,
  ) => {
    const declared = deps.declaration(city.config.current(), name)
    return changeRig(deps.tree(files), declared?.file ?? 'city.toml', name, fields, place)
  }

  const refuseReferred = (city: City, name: string): readonly string[] => {
    const referrers = deps.referrers(city.config.current(), name)
    const beads = city.openBeads(name)
    if (referrers.length === 0 && beads.length === 0) return []
    throw problem('still-referenced', `the rig ${name} is still in use; \`cascade=true\` removes what names it too`, {
      errors: [
        ...referrers.map(({ kind, name: who, key, file, line }) => ({
          location: `${file}:${line}`,
          message: `${kind} ${who} names it as ${key}`,
        })),
        ...beads.map((id) => ({ location: 'path.name', message: `${id} belongs to it and is not closed`, value: id })),
      ],
    })
  }

  /** An event only where it makes a difference; the override is kept either way. */
  const setSuspended = (
    tx: Tx,
    { store }: City,
    config: View,
    name: string,
    override: boolean | undefined,
    actor: string,
  ): void => {
    const { suspended_on_start: otherwise } = needRig(config, name)
    const before = readOverride(tx, name) ?? otherwise
    const after = override ?? otherwise
    writeOverride(tx, name, override, clock.now())
    if (before === after) return
    store.log.append(tx, {
      type: after ? 'rig.suspended' : 'rig.resumed',
      actor,
      subject: name,
      payload: { rig: name, changed: ['suspended'] },
    })
  }

  const placeOf = (city: City, path: PatchBody[string] | undefined): RigPlace | null | undefined =>
    typeof path === 'string' ? placeRig(city.directory, path) : path === null ? null : undefined

  return defineHandlers<typeof rigOperations, RigCity<View>>({
    'list-rigs': async (call) => {
      const { query, signal } = call
      await waitForChange(call.city.store.log, query, clock, signal, isRelevant)
      const { city } = call
      const current = city.config.current()
      const index = headers(city, current.revision)
      const names = current.rigs.map(({ name }) => name).sort()
      const items = names.map((name) => info(city, current, name, query.git))
      return ok({ items, total: items.length }, index)
    },

    'get-rig': ({ params, query, city }) => answer(city, info(city, city.config.current(), params.name, query.git)),

    'create-rig': ({ body, header, claim, city, actor }) => {
      const { git_url: url } = body
      if (url === undefined)
        return tagged(
          city,
          city.store.keys.once(claim, () => createHere(city, body, header('if-match'), claim, actor)),
        )
      if (body.path !== undefined)
        throw invalidField('body.path', 'is not taken with `git_url`: the clone goes to `rigs/<name>`', body.path)
      const input = cloneInput(body, deps.checkSource(url))
      const launched = city.launch({
        operation: 'rig.create',
        subject: body.name,
        input,
        claim,
        check: () => {
          const current = city.config.current()
          checkPrecondition(header('if-match'), current.revision)
          refuseTaken(current, body.name)
          city.store.requests.refuseSecond('rig.create', body.name, `the rig ${body.name} is being made already`)
          const place = placeRig(city.directory, `${CLONES}/${body.name}`)
          if (isThere(place.directory)) throw problem('name-taken', `${CLONES}/${body.name} is there already`)
        },
      })
      return tagged(city, launched)
    },

    'patch-rig': async ({ params, body, header, city, actor }) => {
      const { name } = params
      const { suspended, path, ...fields } = body
      const override = suspended === null ? undefined : suspended === undefined ? undefined : suspended === true
      const place = placeOf(city, path)
      const takeBack = place == null || place.inCity === undefined ? () => {} : makeDirectory(place.directory)
      const writeSuspension = (tx: Tx, config: View) => {
        if (suspended !== undefined) setSuspended(tx, city, config, name, override, actor)
      }
      try {
        const outcome = await city.config.edit({
          ifMatch: header('if-match'),
          etag: (config) => revision(city, config, name),
          actor,
          change: (files) => {
            refuseNewPrefix(city, needRig(city.config.current(), name), fields['prefix'])
            return changeIn(city, files, name, fields, place)
          },
          events: ({ result }) => [
            { type: 'rig.updated', actor, subject: name, payload: { rig: name, changed: [...result] } },
          ],
          alsoWrite: (tx, { config }) => writeSuspension(tx, config),
        })
        if (!outcome.changed && suspended !== undefined)
          await city.store.db.write((tx) => writeSuspension(tx, outcome.config))
        return answer(city, info(city, outcome.config, name))
      } catch (error) {
        takeBack()
        throw error
      }
    },

    'delete-rig': async ({ params, query, header, city, actor }) => {
      const { name } = params
      const outcome = await city.config.edit({
        ifMatch: header('if-match'),
        etag: (config) => revision(city, config, name),
        actor,
        change: (files) => {
          const tree = deps.tree(files)
          const removed = query.cascade === true ? removeReferrers(tree, name) : refuseReferred(city, name)
          removeRig(tree, name)
          return removed
        },
        events: () => [{ type: 'rig.deleted', actor, subject: name, payload: { rig: name, changed: [] } }],
        alsoWrite: (tx) => writeOverride(tx, name, undefined, clock.now()),
      })
      const { config, result } = outcome
      return ok(
        { status: 'deleted', name, removed: [...result], revision: config.revision },
        headers(city, config.revision),
      )
    },

    'act-on-rig': async ({ params, header, city, actor }) => {
      const { name, action } = params
      await city.store.db.write((tx) => {
        const current = city.config.current()
        checkPrecondition(header('if-match'), revision(city, current, name))
        if (action !== 'restart') setSuspended(tx, city, current, name, action === 'suspend', actor)
      })
      const left = action === 'restart' ? await city.sessions.restart(name) : []
      if (left.length > 0)
        throw problem('gateway-timeout', `some sessions of the rig ${name} could not be ended`, {
          errors: left.map((id) => ({ location: 'path.name', message: `the session ${id} still runs`, value: id })),
        })
      return answer(city, info(city, city.config.current(), name))
    },
  })
}

/** Ids of its beads begin with it: under another one their export would be taken in by nobody. */
function refuseNewPrefix(
  city: Pick<RigCity<unknown>, 'beads'>,
  rig: RigView,
  wanted: PatchBody[string] | undefined,
): void {
  if (typeof wanted !== 'string' || wanted === rig.prefix) return
  const beads = city.beads(rig.name)
  if (beads === 0) return
  const detail = `the rig ${rig.name} has ${beads} bead${beads === 1 ? '' : 's'} whose ids begin with ${rig.prefix}-: it keeps that prefix; make another rig for work under ${wanted}-`
  throw problem('still-referenced', detail, {
    errors: [
      {
        location: 'body.prefix',
        message: `${beads === 1 ? 'one bead has' : `${beads} beads have`} the prefix ${rig.prefix}`,
        value: wanted,
      },
    ],
  })
}

function refuseTaken(config: RigsView, name: string): void {
  if (findRig(config, name) !== undefined) throw problem('name-taken', `there is a rig ${name} already`)
}
