SELECT window_start, window_end, rank, item_id, page_views, closed, revision, 'live' AS status
FROM (
    SELECT *, max(revision) OVER (PARTITION BY window_end) AS newest
    FROM hot_items_live
) AS revisions
WHERE revision = newest
