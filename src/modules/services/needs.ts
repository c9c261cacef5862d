/** Services that do not run though they should. */
import type { NeedSource } from '../../kernel/needs.ts'
import type { Service } from './service.ts'

export const serviceNeeds = (services: {
  readonly all: readonly Service[]
  find(name: string): Service | undefined
}): NeedSource => ({
  name: 'services',
  types: ['service.state_changed', 'config.reloaded'],
  subjectsOf: ({ type, subject }) =>
    type === 'config.reloaded' || subject === undefined ? services.all.map(({ name }) => name) : [subject],
  subjects: () => services.all.map(({ name }) => name),
  needsOf: (_, name) => {
    const service = services.find(name)
    if (service?.state !== 'degraded') return []
    const { reason, message } = service
    return [
      {
        key: 'degraded',
        kind: 'service_failed',
        subject: { kind: 'service', id: name, name },
        title: `The service ${name} does not run: ${reason}`,
        ...(message === undefined ? {} : { detail: message }),
        operations: [
          {
            operation: 'restart-service',
            params: { service: name },
            label: 'Restart',
            command: `svcctl service restart ${name}`,
          },
          {
            operation: 'get-service-log',
            params: { service: name },
            label: 'Log',
            command: `svcctl service logs ${name}`,
          },
        ],
      },
    ]
  },
})
