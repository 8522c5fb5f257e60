// What claims need to know of a queue between two reads of its record: lanes and share. Filled by whoever reads or
// writes queue records in this process; a queue nobody asked for has the defaults until the next refresh.
import { defaultQueue } from '../../store/queue-defaults.ts'
import type { QueueRecord } from '../../store/queue-store.ts'
import type { LaneSettings } from './lanes.ts'

export class QueueSettingsCache {
  readonly #lanes = new Map<string, LaneSettings>()

  laneSettings(queue: string): LaneSettings {
    return this.#lanes.get(queue) ?? defaultQueue(queue)
  }

  learn(record: QueueRecord): QueueRecord {
    this.#lanes.set(record.name, { lanes: record.lanes, lowerLaneShare: record.lowerLaneShare })
    return record
  }
}
