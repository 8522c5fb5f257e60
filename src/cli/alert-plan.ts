// The alerts of the configuration, as the commands about them need them.
import { checkAlerts } from '../alerts/options.ts'
import type { AlertPlan } from '../alerts/options.ts'
import type { Settings } from './settings.ts'

/** Null: the configuration says that nobody looks for alerts. */
export function alertPlanOf({ alerts }: Pick<Settings, 'alerts'>): AlertPlan | null {
  return alerts === false ? null : checkAlerts(alerts)
}

export const ALERTS_OFF = 'alerts are off: the configuration says `alerts: false`'
