"""From a run's facts and a request to a WorkOrder, or to the faults for which none is made. Source: protocol §2.3-2.5, §2.8-2.9, §3.1, §6.8-6.9."""
