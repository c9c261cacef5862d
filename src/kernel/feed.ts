/** Where a stream's bytes come from and go to; the two sides meet here and know nothing else of each other. */

/** The client's end. One owner; `write` never waits. */
export interface Sink {
  /** False: keep back until `drained` of the attachment is called. */
  write(batch: Buffer): boolean
  /** No more will come. */
  end(): void
}

export interface Attachment {
  /** The sink takes bytes again. */
  drained(): void
  /** The client is gone. */
  detach(): void
  /** Writes what is there and was kept back for a moment: the stream is about to end. */
  settle?(): void
  /** Id of the newest event of its log, where the client has been given everything up to it. */
  headId?(): string | undefined
}

/** A stream that is set up: everything that can be refused was refused before. */
export interface Feed {
  /** Beside those that every stream has. */
  readonly headers?: Readonly<Record<string, string>>
  attach(sink: Sink): Attachment
}

/** `feed`, which ends when `listen` calls, if it has not ended by itself. */
export function endingWith(feed: Feed, listen: (end: () => void) => () => void): Feed {
  return {
    ...feed,
    attach(sink): Attachment {
      const attachment = feed.attach(sink)
      const unlisten = listen(() => {
        attachment.settle?.()
        attachment.detach()
        sink.end()
      })
      return {
        drained: () => attachment.drained(),
        settle: () => attachment.settle?.(),
        headId: () => attachment.headId?.(),
        detach() {
          unlisten()
          attachment.detach()
        },
      }
    },
  }
}
