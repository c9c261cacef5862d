/** Where rigs that start as a clone meet the packs family: the same fence, the same logins, the same way to run git. */

import { type RemoteSource, SourceError, sourceOrError } from '../../files/pack-source.ts'
import { JobFailure } from '../../kernel/jobs.ts'
import { invalidField } from '../../kernel/problem.ts'
import { CredentialError, createLogins, type Logins } from '../../modules/packs/remote/credentials.ts'
import { BlockedHost, createFence, type Fence, UnknownHost } from '../../modules/packs/remote/fence.ts'
import { Git, GitError } from '../../modules/packs/remote/git.ts'
import type { Host } from './running.ts'

export interface RigClonesDeps {
  readonly fence: Fence
  readonly git: Pick<Git, 'clone'>
  readonly logins: Logins
}

/** A project may be larger than a pack. */
const MAX_CLONE_BYTES = 8 * 1024 ** 3

export function openRigClones({ settings, env, clock }: Pick<Host, 'settings' | 'env' | 'clock'>): RigClones {
  return createRigClones({
    fence: createFence(settings.allowedPackHosts),
    git: new Git({ env, clock, maxBytes: MAX_CLONE_BYTES }),
    logins: createLogins({ home: settings.home, env, clock }),
  })
}

export type RigClones = ReturnType<typeof createRigClones>

export function createRigClones({ fence, git, logins }: RigClonesDeps) {
  return {
    /** The normal form of a source that may be cloned; a refusal never repeats it, for it may hold a password. */
    checkSource(url: string): string {
      const remote = remoteOf(url)
      const refused = fence.refusal(remote)
      if (refused !== undefined) throw invalidField('body.git_url', forRigs(refused))
      return remote.source
    },
    async clone(source: string, directory: string, signal: AbortSignal): Promise<void> {
      try {
        const remote = remoteOf(source)
        const addresses = await fence.vet(remote, signal)
        await git.clone(remote, directory, { ...(await logins(remote, signal)), addresses, signal })
      } catch (error) {
        throw toFailure(error)
      }
    },
  }
}

function remoteOf(url: string): RemoteSource {
  const source = sourceOrError(url)
  if (source instanceof SourceError) throw invalidField('body.git_url', forRigs(source.message))
  if (source.kind === 'git' && source.subpath === '') return source
  throw invalidField('body.git_url', 'must be the URL of a git repository, with https, http or ssh')
}

const forRigs = (sentence: string): string =>
  sentence.replaceAll('a pack source', 'the URL').replaceAll('the pack source', 'the URL')

function toFailure(error: unknown): unknown {
  if (error instanceof BlockedHost) return new JobFailure('blocked_host', forRigs(error.message))
  if (error instanceof UnknownHost || error instanceof GitError || error instanceof CredentialError)
    return new JobFailure('clone_failed', forRigs(error.message))
  return error
}
