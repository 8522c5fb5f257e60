// All built-in tasks by name: what each does, in one line, and the function that does it.
import { MillraceError } from '../core/errors.ts'
import { shown } from '../core/names.ts'
import { isInDatabase } from '../store/database.ts'
import type { Backend } from '../store/ports.ts'
import { isSweepable } from '../store/tracking.ts'
import { backupDatabase, checkBackupTask } from './backup.ts'
import { checkLogsTask, cleanLogs } from './logs.ts'
import { checkNotificationsTask, retryNotifications } from './notifications.ts'
import type { TaskOptionsByName } from './options.ts'
import { checkRetentionTask, runRetention } from './retention.ts'
import { checkStaleTask, cleanStale } from './stale.ts'
import { TASK_NAMES } from './task.ts'
import type { TaskFunction, TaskName } from './task.ts'
import { checkTrackingTask, cleanTracking } from './tracking.ts'

export interface Task<Options> {
  readonly does: string
  readonly run: TaskFunction<Options>
  /** Throws when it would not take these options. */
  readonly check: (options: Options) => unknown
  /** Whether this store has any work for it. */
  readonly fits: (backend: Backend) => boolean
}

const always = (): boolean => true

export const TASKS: { readonly [Name in TaskName]: Task<TaskOptionsByName[Name]> } = {
  retention: {
    does: 'removes finished jobs after their period, into the archive',
    run: runRetention,
    check: checkRetentionTask,
    fits: always,
  },
  backup: {
    does: 'dumps the schema with pg_dump, verifies it, rotates old dumps',
    run: backupDatabase,
    check: checkBackupTask,
    fits: isInDatabase,
  },
  logs: {
    does: 'removes old log files, sums the logs of jobs by day',
    run: cleanLogs,
    check: checkLogsTask,
    fits: always,
  },
  stale: {
    does: 'removes records of dead workers and notes that expired',
    run: cleanStale,
    check: checkStaleTask,
    fits: always,
  },
  tracking: {
    does: 'removes what Redis keeps of jobs that are gone',
    run: cleanTracking,
    check: checkTrackingTask,
    fits: isSweepable,
  },
  notifications: {
    does: 'sends notifications again that failed for good',
    run: retryNotifications,
    check: checkNotificationsTask,
    fits: always,
  },
}

export function checkTaskName(name: string): TaskName {
  const known = TASK_NAMES.find((one) => one === name)
  if (known !== undefined) return known
  throw new MillraceError('TASK_NOT_FOUND', `there is no task ${shown(name)}: known are ${TASK_NAMES.join(', ')}`)
}
