/**
 * The configuration of one running city: what is in force, and the one way to change it.
 *
 * Families read `current()`, one immutable object, and follow changes by `onChange`. Whatever edits the city's files
 * goes through `edit`: it holds the city's lock, works on the text of the files as they are on disk, composes and checks
 * the result in memory, and commits files and events together (transaction.ts). A refused edit has changed nothing.
 *
 * S1  What `current()` answers was valid as a whole, and the store has it as the last good configuration.
 * S2  One load, edit or reload at a time; whoever waited sees the outcome of the one before.
 * S3  A file that differs from what was last looked at is never written over: 409 once, and it has been looked at then.
 *     Files that are not valid can be edited as they are, by an edit that adds nothing to what is wrong with them.
 * S4  An event only where something changed; a bad state is reported once.
 */

import { join, relative, sep } from 'node:path'
import type { Edit, Edited, Referrer } from '../../../files/configuration.ts'
import { type ConfigFiles, diskFiles, overlayFiles, readable } from '../../../files/files.ts'
import type { ConfigIssue } from '../../../files/issues.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import { checkPrecondition } from '../../../kernel/etag.ts'
import type { EventDraft } from '../../../kernel/event-log.ts'
import type { Logger } from '../../../kernel/log.ts'
import { problem } from '../../../kernel/problem.ts'
import type { Store } from '../../../kernel/store.ts'
import type { LoadOptions } from '../compose/context.ts'
import { documentHomes } from '../compose/documents.ts'
import { driftOf } from '../compose/drift.ts'
import type { EffectiveConfig } from '../compose/effective.ts'
import { defaultConfig } from '../load/defaults.ts'
import { withImaginedRig } from '../load/imagined-rig.ts'
import { LastGood } from '../load/last-good.ts'
import { type LoadedCity, loadCity } from '../load/load.ts'
import {
  differing,
  hashOf,
  hideEmptyAgents,
  type OwnFiles,
  ownFileKind,
  ownHash,
  type RecordedFiles,
  readOwnFiles,
  recordFiles,
} from '../load/own-files.ts'
import { type CityWatch, watchCity } from '../load/watch.ts'
import { issueText, stillInUse, summarize, toDetail } from './answers.ts'
import { type ChangedNames, type ContentFacts, changedNames, contentFacts } from './changes.ts'
import type { CheckOutcome, CityConfig, ConfigChange, ConfigError, ConfigSource, ReloadOutcome } from './city-config.ts'
import { changing, EditedFiles } from './edited-files.ts'
import { EditJournal } from './journal.ts'
import type { IntendedFile } from './transaction.ts'
import { addedIssues } from './worse.ts'

export interface ConfigServiceDeps {
  readonly name: string
  readonly dir: string
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  /** How to load with these files: the lock of packs, for one, is read through them. */
  readonly loadOptions: (files: ConfigFiles, dir: string) => LoadOptions
  /** Ids of the sessions that are restarted where so many agents, by identity, have drifted. */
  readonly restarts?: (drift: ConfigChange['drift']) => readonly string[]
  /** How many beads belong to a rig: with any it keeps its prefix. */
  readonly beadsOfRig?: (rig: string) => number
  /** What else a rig has that does not end with it, each with its count; kinds of which it has none may be left out. */
  readonly workOfRig?: (rig: string) => readonly RigWork[]
  /** What is wrong with the formulas and orders that go with a configuration. */
  readonly documentIssues?: (config: EffectiveConfig, files: ConfigFiles) => Promise<readonly ConfigIssue[]>
  /** What is in force, or what is wrong, has changed. */
  readonly onStatus?: () => void
  /** The city does not run, and its files are to be mended: without valid ones the defaults are in force. */
  readonly mends?: boolean
}

/** A kind of work that a rig has. */
export interface RigWork {
  readonly count: number
  readonly one: string
  readonly many: string
}

/** A valid load with everything that is kept of it. */
interface Good {
  readonly config: EffectiveConfig
  readonly warnings: readonly ConfigIssue[]
  readonly files: RecordedFiles
  readonly own: OwnFiles
  readonly watched: readonly string[]
  readonly facts: ContentFacts
}

interface Bad {
  readonly issues: readonly ConfigIssue[]
  readonly draft: EffectiveConfig | undefined
  readonly warnings: readonly ConfigIssue[]
  readonly own: OwnFiles
}

type Loaded = ({ readonly ok: true } & Good) | ({ readonly ok: false } & Bad)

/** The files cannot be used and there is no last good configuration. */
export class InvalidConfig extends Error {
  readonly issues: readonly ConfigIssue[]

  constructor(issues: readonly ConfigIssue[]) {
    super(summarize(issues))
    this.issues = issues
  }
}

const EVENT_ISSUES = 100
const HOME = 'city.toml'

export class ConfigService implements CityConfig {
  readonly #deps: ConfigServiceDeps
  readonly #lastGood: LastGood
  readonly #journal: EditJournal
  readonly #listeners = new Set<(change: ConfigChange) => void>()
  readonly #lookers = new Set<() => void>()
  #good: Good | undefined
  #loadedAt = 0
  #lastError: ConfigError | undefined
  /** The state that was last reported as bad. */
  #reported: string | undefined
  /** What the last load found, good or bad. */
  #seen: OwnFiles = new Map()
  #lock: Promise<unknown> = Promise.resolve()
  #watch: CityWatch | undefined
  #closed = false
  #loads = 0

  constructor(deps: ConfigServiceDeps) {
    this.#deps = deps
    this.#lastGood = new LastGood(deps.store, deps.dir)
    this.#journal = new EditJournal(deps)
  }

  /** Finishes what a crash interrupted, loads the files, or the last good ones; throws `InvalidConfig` without either. */
  async open(): Promise<void> {
    await this.#locked(async () => {
      await this.#finishIntent()
      const loaded = this.#loadDisk()
      if (loaded.ok) return this.#begin(loaded)
      const kept = this.#lastGood.files(diskFiles())
      const last = kept === undefined ? undefined : this.#load(kept, true)
      const good = last?.ok === true ? last : this.#defaults(loaded)
      if (good === undefined) throw new InvalidConfig(loaded.issues)
      this.#good = good
      this.#loadedAt = this.#deps.clock.now()
      await this.#reject(loaded, 'start')
    })
    if (!this.#closed && this.#deps.mends !== true) this.#startWatch()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#watch?.close()
    await this.#lock
  }

  // --- Reading -----------------------------------------------------------------------------------------------------

  current(): EffectiveConfig {
    return this.#loaded().config
  }

  get revision(): string {
    return this.#loaded().config.revision
  }

  get loadedAt(): number {
    return this.#loadedAt
  }

  get lastError(): ConfigError | undefined {
    return this.#lastError
  }

  get warnings(): readonly ConfigIssue[] {
    return this.#loaded().warnings
  }

  get files(): ConfigFiles {
    return this.#loaded().files
  }

  /** How often files were loaded: what a storm of changes costs. */
  get loads(): number {
    return this.#loads
  }

  /** The revision of the files as they are on disk; undefined where they are not valid. */
  validRevision(): string | undefined {
    const loaded = this.#loadDisk()
    return loaded.ok ? loaded.config.revision : undefined
  }

  /** The text of the city's own configuration files, as they are on disk now. */
  readFiles(): OwnFiles {
    return readOwnFiles(this.#deps.dir, diskFiles(), this.#loaded().watched)
  }

  /** The text of one of them, also of a fragment that nothing includes; 422 for a path that is none. */
  readText(path: string): string | undefined {
    return new EditedFiles(this.#deps.dir, this.readFiles()).get(path)
  }

  onChange(listener: (change: ConfigChange) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  onLooked(listener: () => void): () => void {
    this.#lookers.add(listener)
    return () => this.#lookers.delete(listener)
  }

  /** What the files on disk amount to, with `changes` (path to text, null: removed) in place of some. */
  async check(changes: ReadonlyMap<string, string | null> = new Map()): Promise<CheckOutcome> {
    const edits = new Map([...changes].map(([path, text]) => [join(this.#deps.dir, path), text]))
    const files = overlayFiles(diskFiles(), edits)
    const loaded = this.#load(files)
    const config = loaded.ok ? loaded.config : loaded.draft
    const own = loaded.ok ? [] : loaded.issues
    const documents = config === undefined ? [] : await this.#deps.documentIssues?.(config, files)
    const issues = [...own, ...this.#issuesOfNextRig(edits, config, own), ...(documents ?? [])]
    const revision = loaded.ok ? loaded.config.revision : undefined
    const read = new Set(loaded.own.keys())
    return { valid: issues.length === 0, revision, issues, warnings: loaded.warnings, read }
  }

  /** What is wrong with agents, prompts and imports that only a rig has, which may not be there yet. */
  #issuesOfNextRig(
    edits: ReadonlyMap<string, string | null>,
    config: EffectiveConfig | undefined,
    known: readonly ConfigIssue[],
  ): readonly ConfigIssue[] {
    const { dir } = this.#deps
    const path = join(dir, HOME)
    const bytes = readable(overlayFiles(diskFiles(), edits), path, dir)
    if (config === undefined || bytes === undefined) return []
    const withRig = withImaginedRig(bytes, config.default_rig_imports)
    if (withRig === undefined) return []
    const loaded = this.#load(overlayFiles(diskFiles(), new Map([...edits, [path, withRig]])))
    if (loaded.ok) return []
    const seen = new Set(known.map(issueText))
    // What is wrong with the imagined entry itself is nobody's mistake.
    return loaded.issues.filter((issue) => issue.file !== HOME && !seen.has(issueText(issue)))
  }

  // --- Changing ----------------------------------------------------------------------------------------------------

  edit<T>(input: Edit<EffectiveConfig, T>): Promise<Edited<EffectiveConfig, T>> {
    return this.#locked(() => this.#edit(input))
  }

  reload(source: ConfigSource, soft = false): Promise<ReloadOutcome> {
    return this.#locked(async () => {
      await this.#finishIntent()
      return this.#reload(source, soft)
    })
  }

  /** Loads if the city's own files are not what was last looked at: the patrol's look, cheap where nothing changed. */
  async lookAgain(): Promise<void> {
    if (this.#closed) return
    try {
      if (this.#journal.isOpen || differing(this.readFiles(), this.#seen).length > 0) await this.reload('watch')
    } catch (error) {
      this.#warn(error, 'configuration not reloaded')
    }
  }

  async #edit<T>(input: Edit<EffectiveConfig, T>): Promise<Edited<EffectiveConfig, T>> {
    await this.#finishIntent()
    if (input.mends !== true) await this.#refuseUnseen()
    const good = this.#loaded()
    const files = new EditedFiles(this.#deps.dir, this.readFiles(), input.documents)
    const said = this.#said()
    const etag = input.etag?.(said, files) ?? good.config.revision
    checkPrecondition(input.ifMatch, etag)
    const result = changing(() => input.change(files, said))
    const edits = files.edits()
    if (edits.length === 0) return this.#nothing(input, good, result)
    const candidate = this.#compose(files.overlay())
    if (!candidate.ok) return this.#wait(input, result, edits, candidate)
    const outcome: Edited<EffectiveConfig, T> = {
      result,
      config: candidate.config,
      rejected: [],
      previous: good.config,
      changed: true,
      warnings: candidate.warnings,
    }
    if (input.dryRun === true) return outcome
    const changed = changedNames(good, candidate)
    const restarted = this.#restarts(good, candidate)
    const reloaded = reloadedEvent(this.#deps.name, good, candidate, {
      source: 'api',
      changed,
      actor: input.actor,
      restarted,
    })
    const told = (input.events?.(outcome) ?? []).map((event) => ({ ...event, actor: input.actor }))
    const events = [...told, ...(reloaded === undefined ? [] : [reloaded])]
    await this.#journal.commit({ files: edits, events, ...answerOf(input, outcome) }, (tx) => {
      input.alsoWrite?.(tx, outcome)
      this.#apply(tx, candidate, { source: 'api', soft: false, changed })
    })
    return outcome
  }

  /** What the files say, as far as they can be read: what somebody added with an error in it can be changed, too. */
  #said(): EffectiveConfig {
    const good = this.#loaded().config
    if (this.#lastError === undefined) return good
    const disk = this.#loadDisk()
    return disk.ok ? disk.config : (disk.draft ?? good)
  }

  /** An edit that leaves the files rejected is refused where it made them so, and else written where it may wait. */
  async #wait<T>(
    input: Edit<EffectiveConfig, T>,
    result: T,
    edits: readonly IntendedFile[],
    bad: Bad,
  ): Promise<Edited<EffectiveConfig, T>> {
    const good = this.#loaded()
    this.#refuseWorse(input.referrers, edits, bad)
    const config = bad.draft ?? (input.waits === 'text' ? good.config : undefined)
    if (input.waits === undefined || config === undefined)
      throw problem('conflict-config', `the files on disk are not valid, mend them first: ${summarize(bad.issues)}`, {
        errors: bad.issues.map(toDetail),
      })
    const outcome = {
      result,
      config,
      rejected: bad.issues,
      previous: good.config,
      changed: true,
      warnings: bad.warnings,
    }
    if (input.dryRun === true) return outcome
    const rejection = this.#rejection(bad, 'api', input.actor)
    await this.#journal.commit({ files: edits, events: [rejection.event], ...answerOf(input, outcome) }, (tx) =>
      tx.afterCommit(() => {
        this.#seen = bad.own
        this.#reported = rejection.state
        this.#show(rejection.error)
      }),
    )
    return outcome
  }

  #refuseWorse(
    referrers: ((config: EffectiveConfig) => readonly Referrer[]) | undefined,
    edits: readonly IntendedFile[],
    bad: Bad,
  ): void {
    const disk = this.#loadDisk()
    const added = addedIssues(disk.ok ? [] : disk.issues, bad.issues, new Set(edits.map(({ path }) => path)))
    if (added.length === 0) return
    const blamed = referrers?.(this.#said()) ?? []
    if (blamed.length > 0) throw stillInUse(blamed)
    throw problem('invalid-config', summarize(added), {
      errors: added.map(toDetail),
      issues: added.map((one) => ({ ...one })),
    })
  }

  /** The answer of an edit that changes nothing is kept for its key like any other. */
  async #nothing<T>(input: Edit<EffectiveConfig, T>, good: Good, result: T): Promise<Edited<EffectiveConfig, T>> {
    const outcome: Edited<EffectiveConfig, T> = {
      result,
      config: good.config,
      rejected: [],
      previous: good.config,
      changed: false,
      warnings: good.warnings,
    }
    const { claim, reply } = input
    const { store } = this.#deps
    if (claim === undefined || reply === undefined || input.dryRun === true) return outcome
    await store.db.write((tx) => store.keys.remember(tx, claim, reply(outcome)))
    return outcome
  }

  #compose(overlay: ReadonlyMap<string, string | null>): Loaded {
    const { dir } = this.#deps
    return this.#load(hideEmptyAgents(dir, overlayFiles(diskFiles(), overlay)))
  }

  /** Files that nobody has looked at are looked at first; the edit is refused either way, for it was meant for others. */
  async #refuseUnseen(): Promise<void> {
    if (differing(this.readFiles(), this.#seen).length === 0) return
    const { outcome, issues } = await this.#reload('watch', false)
    if (outcome === 'no_change') return
    const state = outcome === 'applied' ? 'have been loaded now' : `are not valid: ${summarize(issues)}`
    throw problem('conflict-config', `the files on disk were changed meanwhile and ${state}: look again, then repeat`, {
      errors: issues.map(toDetail),
      retryAfterSec: 1,
    })
  }

  /** Ends an edit that was interrupted. Its event is in the log then: what it changed becomes current without another. */
  async #finishIntent(): Promise<void> {
    const ended = await this.#journal.finish()
    if (ended === undefined) return
    this.#deps.log.info({ city: this.#deps.name, ...ended }, 'interrupted edit ended')
    const loaded = this.#good === undefined ? undefined : this.#loadDisk()
    if (loaded?.ok === true) await this.#adopt(loaded, 'api')
  }

  async #reload(source: ConfigSource, soft: boolean): Promise<ReloadOutcome> {
    const good = this.#loaded()
    const read = this.#loadDisk()
    const loaded = read.ok ? { ...read, warnings: [...read.warnings, ...this.#goneRigs(good, read)] } : read
    if (!loaded.ok) {
      await this.#reject(loaded, source)
      return { outcome: 'rejected', revision: good.config.revision, warnings: loaded.warnings, issues: loaded.issues }
    }
    const { revision } = loaded.config
    if (revision === good.config.revision) {
      this.#good = loaded
      this.#clearError()
      this.#looked()
      return { outcome: 'no_change', revision, warnings: loaded.warnings, issues: [] }
    }
    const changed = changedNames(good, loaded)
    const event = reloadedEvent(this.#deps.name, good, loaded, {
      source,
      changed,
      actor: source === 'watch' ? 'supervisor' : 'api',
      restarted: soft ? [] : this.#restarts(good, loaded),
    })
    const { store } = this.#deps
    await store.db.write((tx) => {
      if (event !== undefined) store.log.append(tx, event)
      this.#apply(tx, loaded, { source, soft, changed })
    })
    return { outcome: 'applied', revision, warnings: loaded.warnings, issues: [] }
  }

  #restarts(before: Good, after: Good): readonly string[] {
    return this.#deps.restarts?.(driftOf(before, after)) ?? []
  }

  /** What a city that is to be mended has in force while none of its files can be: nothing of them is run. */
  #defaults({ own }: Bad): Good | undefined {
    const { dir, name, mends, loadOptions } = this.#deps
    if (mends !== true) return undefined
    const files = recordFiles(diskFiles())
    const config = defaultConfig(dir, name, loadOptions(files, dir))
    const watched = [...own.keys()].map((path) => join(dir, path))
    return { config, warnings: [], files, own, watched, facts: contentFacts(config, files) }
  }

  #begin(loaded: Good): Promise<void> {
    return this.#deps.store.db.write((tx) => {
      this.#lastGood.save(tx, loaded.files.content)
      tx.afterCommit(() => this.#install(loaded))
    })
  }

  #adopt(loaded: Good, source: ConfigSource): Promise<void> {
    const changed = changedNames(this.#loaded(), loaded)
    return this.#deps.store.db.write((tx) => this.#apply(tx, loaded, { source, soft: false, changed }))
  }

  /** Makes `loaded` the configuration in force, once the write has committed. */
  #apply(tx: Tx, loaded: Good, change: Pick<ConfigChange, 'source' | 'soft' | 'changed'>): void {
    this.#lastGood.save(tx, loaded.files.content)
    tx.afterCommit(() => {
      const before = this.#loaded()
      this.#install(loaded)
      if (this.#listeners.size === 0) return
      const whole = { ...change, config: loaded.config, previous: before.config, drift: driftOf(before, loaded) }
      for (const listener of this.#listeners) this.#notify(listener, whole)
    })
  }

  #install(loaded: Good): void {
    this.#good = loaded
    this.#seen = loaded.own
    this.#loadedAt = this.#deps.clock.now()
    this.#clearError()
    this.#deps.onStatus?.()
  }

  #clearError(): void {
    this.#reported = undefined
    if (this.#lastError === undefined) return
    this.#lastError = undefined
    this.#deps.onStatus?.()
  }

  #looked(): void {
    for (const listener of this.#lookers) this.#notify(listener, undefined)
  }

  #notify<T>(listener: (news: T) => void, news: T): void {
    try {
      listener(news)
    } catch (error) {
      this.#deps.log.error({ city: this.#deps.name, err: error }, 'listener of the configuration failed')
    }
  }

  async #reject(bad: Bad, source: ConfigSource): Promise<void> {
    const { store } = this.#deps
    const rejection = this.#rejection(bad, source, source === 'reload' ? 'api' : 'supervisor')
    this.#looked()
    if (rejection.state === this.#reported) return
    this.#show(rejection.error)
    // The start that failed for it has said so.
    const isKnown = source === 'start' && this.#deps.mends === true
    if (!isKnown)
      await store.db.write((tx) => {
        store.log.append(tx, rejection.event)
      })
    this.#reported = rejection.state
  }

  #rejection(bad: Bad, source: ConfigSource, actor: string): Rejection {
    const revision = ownHash(bad.own)
    const at = this.#deps.clock.now()
    return {
      state: hashOf(JSON.stringify([revision, bad.issues])),
      error: { revision, at, since: this.#lastError?.since ?? at, issues: bad.issues },
      event: {
        type: 'config.rejected',
        actor,
        subject: this.#deps.name,
        payload: {
          attempted_revision: revision,
          active_revision: this.revision,
          source,
          issues: bad.issues.slice(0, EVENT_ISSUES).map((issue) => ({ ...issue })),
        },
      },
    }
  }

  #show(error: ConfigError): void {
    this.#lastError = error
    this.#deps.onStatus?.()
  }

  #loadDisk(): Loaded {
    const loaded = this.#load(diskFiles())
    this.#seen = loaded.own
    return loaded
  }

  #load(base: ConfigFiles, kept = false): Loaded {
    const { dir } = this.#deps
    this.#loads++
    const files = recordFiles(base)
    const loaded: LoadedCity = loadCity(dir, { ...this.#deps.loadOptions(files, dir), kept }, files)
    const watched = [...loaded.files.read]
    const own = readOwnFiles(dir, files, watched)
    const { warnings } = loaded
    if (!loaded.ok) return { ok: false, issues: loaded.issues, draft: loaded.draft, warnings, own }
    const { config } = loaded
    const refused = [...this.#refuseRename(config), ...this.#refuseNewPrefixes(config, own)]
    if (refused.length > 0) return { ok: false, issues: refused, draft: config, warnings, own }
    return { ok: true, config, warnings, files, own, watched, facts: contentFacts(config, files) }
  }

  /** The name is part of paths, events and requests: another one is another start. */
  #refuseRename({ name }: EffectiveConfig): readonly ConfigIssue[] {
    const now = this.#good?.config.name
    if (now === undefined || now === name) return []
    const file = this.#good?.own.has('.svc/site.toml') === true ? '.svc/site.toml' : 'city.toml'
    return [
      {
        file,
        line: 1,
        column: 1,
        key: file === 'city.toml' ? 'workspace.name' : 'workspace_name',
        message: `the city is running as \`${now}\`: another name (\`${name}\`) needs a restart`,
        hint: 'stop the city, change the name, start it',
      },
    ]
  }

  /** Ids begin with the prefix of their rig: under another one nobody would know whose they are. */
  #refuseNewPrefixes({ rigs }: EffectiveConfig, own: OwnFiles): readonly ConfigIssue[] {
    const now = new Map(this.#good?.config.rigs.map(({ name, prefix }) => [name, prefix]))
    return rigs.flatMap(({ name, prefix }): readonly ConfigIssue[] => {
      const before = now.get(name)
      const beads = before === undefined || before === prefix ? 0 : (this.#deps.beadsOfRig?.(name) ?? 0)
      if (beads === 0) return []
      const file = own.has('city.toml') ? 'city.toml' : ''
      const message = `the rig ${name} has ${beads} bead${beads === 1 ? '' : 's'} whose ids begin with \`${before}-\`: its prefix cannot become \`${prefix}\``
      return [{ file, line: 1, column: 1, key: `rigs.${name}.prefix`, message, hint: `keep prefix = "${before}"` }]
    })
  }

  /** Rigs that somebody took out of the files by hand, or renamed there, and that still have work. */
  #goneRigs(before: Good, after: Good): readonly ConfigIssue[] {
    const stays = new Set(after.config.rigs.map(({ name }) => name))
    return before.config.rigs.flatMap(({ name }): readonly ConfigIssue[] => {
      const work = stays.has(name) ? [] : this.#workOf(name)
      if (work.length === 0) return []
      const counted = work.map(({ count, one, many }) => `${count} ${count === 1 ? one : many}`).join(', ')
      const isOne = work.length === 1 && work[0]?.count === 1
      const message = `${counted} ${isOne ? 'is' : 'are'} of the rig ${name}, which is gone: nobody works on ${isOne ? 'it' : 'them'}, and molecules there stop`
      const hint = `put the rig back under the name ${name}, or move its beads: svcctl bead list --rig ${name}`
      return [{ file: HOME, line: 1, column: 1, key: `rigs.${name}`, message, hint }]
    })
  }

  #workOf(rig: string): readonly RigWork[] {
    const { beadsOfRig, workOfRig } = this.#deps
    const beads = { count: beadsOfRig?.(rig) ?? 0, one: 'bead', many: 'beads' }
    return [beads, ...(workOfRig?.(rig) ?? [])].filter(({ count }) => count > 0)
  }

  #startWatch(): void {
    const { dir, clock } = this.#deps
    const extra = () => [
      ...this.#loaded().watched,
      ...documentDirs(this.#loaded().config),
      ...this.#loaded()
        .config.packs.filter((pack) => pack.kind === 'local')
        .map((pack) => pack.dir),
    ]
    this.#watch = watchCity({
      dir,
      clock,
      extra,
      changed: (paths) => void this.#changedOnDisk(paths),
      failed: (error) => this.#warn(error, 'watching the configuration failed'),
    })
    // What changed between the load and the first look of the watch.
    void this.#watch.ready.then(() => this.lookAgain())
  }

  async #changedOnDisk(paths: ReadonlySet<string>): Promise<void> {
    if (this.#closed) return
    // Edits over the API ring here too: what has been looked at already needs no second load.
    const own = [...paths].every(
      (path) => ownFileKind(relative(this.#deps.dir, path).split(sep).join('/')) !== undefined,
    )
    if (own) return this.lookAgain()
    await this.reload('watch').catch((error: unknown) => this.#warn(error, 'configuration not reloaded'))
  }

  #warn(error: unknown, message: string): void {
    if (!this.#closed) this.#deps.log.warn({ city: this.#deps.name, err: error }, message)
  }

  #loaded(): Good {
    if (this.#good === undefined)
      throw problem('unavailable', 'the configuration of the city is not loaded', { retryAfterSec: 1 })
    return this.#good
  }

  #locked<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#lock.then(work, work)
    this.#lock = turn.catch(() => {})
    return turn
  }
}

/** Directories of formulas and orders that rigs have of their own. */
const documentDirs = (config: EffectiveConfig): readonly string[] =>
  documentHomes(config)
    .filter(({ layer }) => layer === 'rig')
    .flatMap(({ formulas, orders, fragments }) => [formulas, orders ?? formulas, fragments ?? formulas])

/** Files that are refused: what is shown of them, and what is told. */
interface Rejection {
  /** The files and what is wrong with them: told once. */
  readonly state: string
  readonly error: ConfigError
  readonly event: EventDraft
}

/** The answer that is kept for the key of the request. */
function answerOf<T>({ claim, reply }: Edit<EffectiveConfig, T>, outcome: Edited<EffectiveConfig, T>) {
  return claim === undefined || reply === undefined ? {} : { answer: { claim, reply: reply(outcome) } }
}

interface Occasion {
  readonly source: ConfigSource
  readonly changed: ChangedNames
  readonly actor: string
  readonly restarted: readonly string[]
}

/** Nothing to tell where the files differ and their meaning does not. */
function reloadedEvent(
  city: string,
  before: Good,
  after: Good,
  { source, changed, actor, restarted }: Occasion,
): EventDraft | undefined {
  if (before.config.revision === after.config.revision) return undefined
  const { agents, rigs, providers, orders, formulas, packs } = changed
  return {
    type: 'config.reloaded',
    actor,
    subject: city,
    payload: {
      revision: after.config.revision,
      previous_revision: before.config.revision,
      source,
      changed: {
        agents: [...agents],
        rigs: [...rigs],
        providers: [...providers],
        orders: [...orders],
        formulas: [...formulas],
        packs: [...packs],
      },
      restarted: [...restarted],
      warnings: after.warnings.slice(0, EVENT_ISSUES).map((issue) => ({ ...issue })),
    },
  }
}
