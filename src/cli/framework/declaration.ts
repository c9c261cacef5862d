/**
 * What a command declares besides its words and its operation: positionals, view, examples, and then only what differs
 * from the contract. The compiler holds every name of a field to the operation's path, query and body.
 */
import type { CallOptions, Client, Reply } from '../../client/client.ts'
import type { AsyncAcceptedResponse } from '../../contract/base/accepted.ts'
import type { BodyOf, ParamsOf, QueryOf, ReplyOf } from '../../contract/base/operation.ts'
import type { OperationById, OperationId } from '../../contract/index.ts'
import type { ArgumentSpec, Completed, FlagSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import type { View } from '../print/view.ts'

/** What an operation answers. */
export type AnswerOf<Id extends OperationId> = ReplyOf<OperationById<Id>>
type Params<Id extends OperationId> = ParamsOf<OperationById<Id>>
type Query<Id extends OperationId> = QueryOf<OperationById<Id>>
/** A text is no field. */
type Body<Id extends OperationId> = [BodyOf<OperationById<Id>>] extends [undefined | string]
  ? Record<never, never>
  : NonNullable<BodyOf<OperationById<Id>>>
type Name<T> = Extract<keyof T, string>
type FieldOf<Id extends OperationId> = Name<Params<Id>> | Name<Query<Id>> | Name<Body<Id>>
type In<T, F> = F extends keyof T ? T[F] : never
/** Some fields of an operation, with values as it takes them. */
export type SaidOf<Id extends OperationId> = {
  readonly [F in FieldOf<Id>]?: In<Params<Id>, F> | In<Query<Id>, F> | In<Body<Id>, F> | undefined
}
type PerField<Id extends OperationId, T> = { readonly [F in FieldOf<Id>]?: T }

/** What a command shows: an item of a list, else the answer, unless that only says what was accepted. */
type Shown<Answer> = Answer extends { readonly items: readonly (infer Item)[] } ? Item : Answer
export type ShownOf<Id extends OperationId> = Extract<Shown<Exclude<AnswerOf<Id>, AsyncAcceptedResponse>>, object>

type Positional<F extends string> = `<${F}>` | `[${F}]` | `<${F}...>` | `[${F}...]`

/** A command at work: what was said, and the way to send it. */
export interface Call<Id extends OperationId> {
  readonly context: Context
  readonly input: Input
  readonly client: Client
  /** Empty where the operation is of no city. */
  readonly cityName: string
  readonly said: SaidOf<Id>
  /** For further calls: the time limit. */
  readonly options: CallOptions & { readonly signal: AbortSignal }
  /** What the command does by itself: calls the operation and shows the answer. */
  show(): Promise<number>
  /** Calls the operation with what was said; `more` wins. */
  send(more?: SaidOf<Id>): Promise<Reply<AnswerOf<Id>>>
}

export interface Declaration<Id extends OperationId> {
  /** What it calls besides. */
  readonly also?: readonly OperationId[]
  readonly summary?: string
  readonly description?: string
  /** A path parameter with `...` takes several: each is a call of its own. */
  readonly arguments?: readonly Positional<FieldOf<Id>>[]
  /** What an argument is called, where the name of its field does not do. */
  readonly called?: PerField<Id, string>
  /** Arguments that are no fields; they come last. */
  readonly operands?: readonly ArgumentSpec[]
  /** How a field is spelled where its name does not do: `-t --type`, `-d`, `--no-git`. */
  readonly flags?: PerField<Id, string>
  /** What the help says of a field, where the contract's words are not for people. */
  readonly says?: PerField<Id, string>
  readonly completes?: PerField<Id, Completed>
  /** Fields that the command line does not have, and why. */
  readonly leaves?: PerField<Id, string>
  /** Flags that are no fields. */
  readonly more?: readonly FlagSpec[]
  /** Fields may be given as JSON too. */
  readonly json?: true
  /** What each line does. */
  readonly examples: Readonly<Record<string, string>>
  /** Fields that nobody needs to say; what is said wins. */
  readonly fill?: (context: Context, input: Input) => SaidOf<Id> | Promise<SaidOf<Id>>
  /** What follows from what was said. */
  readonly change?: (said: SaidOf<Id>, context: Context) => SaidOf<Id>
  /** What to ask before it is done; nothing where it need not be. */
  readonly asks?: (names: string, input: Input, context: Context) => string | undefined | Promise<string | undefined>
  /** All pages of a list, where nobody asks for fewer. */
  readonly whole?: true
  /** Milliseconds that it may take, where those of an ordinary request do not do. */
  readonly timeoutMs?: (input: Input) => Promise<number>
  /** Further tries after a connection that broke; as the client does where absent. */
  readonly retries?: number
  readonly view?: View<ShownOf<Id>>
  /** A row each, where the command is about several; its view where they are the same. */
  readonly rows?: View<ShownOf<Id>>
  /** Where the answer is not shown by its view. */
  readonly print?: (context: Context, reply: Reply<AnswerOf<Id>>, input: Input) => Promise<unknown>
  /** Where it is more than one call. */
  readonly run?: (call: Call<Id>) => Promise<number>
}
