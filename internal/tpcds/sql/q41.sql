-- Products of makers that have items of some looks.
SELECT DISTINCT i_product_name FROM item i1
WHERE i_manufact_id BETWEEN [MAKER] AND [MAKER] + 400 AND (SELECT count(*) FROM item
  WHERE (i_manufact = i1.i_manufact AND ((i_category = '[CATEGORY1]' AND i_color NOT IN ('[COLOR1]', '[COLOR2]') AND i_size IN ('[SIZE1]', '[SIZE2]', '[SIZE3]'))
      OR (i_category = '[CATEGORY2]' AND i_color <> '[COLOR3]' AND i_size IN ('[SIZE3]', '[SIZE4]', '[SIZE5]'))))
    OR (i_manufact = i1.i_manufact AND ((i_category = '[CATEGORY3]' AND i_units IN ('[UNIT1]', '[UNIT2]', '[UNIT3]', '[UNIT4]', '[UNIT5]'))
      OR (i_category = '[CATEGORY4]' AND i_color <> '[COLOR4]' AND i_size IN ('[SIZE1]', '[SIZE4]', '[SIZE6]'))))) > 0
ORDER BY i_product_name LIMIT 100
