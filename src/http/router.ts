/** Which operation answers a path, and which methods a path takes. */
import createTree from 'find-my-way'
import { type Method, needsRunningCity, type Operation } from '../contract/base/operation.ts'
import { problem } from '../kernel/problem.ts'

const METHODS: readonly Method[] = ['DELETE', 'GET', 'PATCH', 'POST', 'PUT']
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS)
const GET_ONLY: readonly Method[] = ['GET']
const NO_QUERY = {}

/** Where people land who type the address into a browser. */
const REDIRECTS: ReadonlyMap<string, string> = new Map([
  ['/', '/docs'],
  ['/docs/', '/docs'],
])

interface Route {
  readonly operation: Operation
}

export interface Found<R extends Route> {
  readonly route: R
  /** Decoded. */
  readonly params: Readonly<Record<string, string | undefined>>
}

/** What the gates ask about a path that no operation answers. */
export interface Routes {
  /** Methods that the path takes, sorted; empty where there is no such path. */
  methodsOf(path: string): readonly string[]
  /** True for the paths that work on any registered city. */
  worksWhenStopped(path: string): boolean
}

export class Router<R extends Route> implements Routes {
  readonly #routes: readonly R[]
  readonly #tree

  /** `maxLength` is that of the longest path: it is the operation that says that a name is too long. */
  constructor(routes: readonly R[], maxLength: number) {
    this.#routes = routes
    // Each operation has a schema of its own for the query.
    this.#tree = createTree({ maxParamLength: maxLength, querystringParser: () => NO_QUERY })
    const handler = () => {
      throw new Error('the tree is only asked, it calls nobody')
    }
    for (const [index, { operation }] of routes.entries())
      this.#tree.on(operation.method, operation.path.replace(/\{(\w+)\}/g, ':$1'), handler, index)
  }

  find(method: string, path: string): Found<R> | undefined {
    // The tree takes an empty segment for a parameter; no path of ours has one.
    if (!isKnown(method) || path.includes('//') || path.endsWith('/')) return undefined
    const found = this.#tree.find(method, path)
    const route = found === null ? undefined : this.#routes[Number(found.store)]
    return found === null || route === undefined ? undefined : { route, params: found.params }
  }

  /** The path that serves instead of this one. */
  redirect(method: string, path: string): string | undefined {
    return method === 'GET' ? REDIRECTS.get(path) : undefined
  }

  methodsOf(path: string): readonly string[] {
    const methods = REDIRECTS.has(path) ? GET_ONLY : METHODS.filter((method) => this.find(method, path) !== undefined)
    // Where GET is answered HEAD is too (RFC 9110 §9.1).
    return methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  }

  worksWhenStopped(path: string): boolean {
    return METHODS.map((method) => this.find(method, path)).some(
      (found) => found !== undefined && !needsRunningCity(found.route.operation),
    )
  }
}

const isKnown = (method: string): method is Method => KNOWN_METHODS.has(method)

export function refuseUndecodable(path: string): void {
  if (!path.includes('%')) return
  try {
    createTree.sanitizeUrlPath(path)
  } catch {
    throw problem('invalid-request', 'the path cannot be decoded', {
      errors: [{ location: 'path', message: 'cannot be decoded' }],
    })
  }
}
