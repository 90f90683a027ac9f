SELECT grain, window_start, window_end, {columns}, revision, 'live' AS status
FROM (
    SELECT *, max(revision) OVER (PARTITION BY {keys}) AS newest
    FROM traffic_live
) AS revisions
WHERE revision = newest
