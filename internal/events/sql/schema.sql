CREATE TABLE events (
  id        bigint           NOT NULL,
  ts        timestamptz      NOT NULL,
  user_id   integer          NOT NULL,
  country   text,
  device    text             NOT NULL,
  browser   text             NOT NULL,
  url       text             NOT NULL,
  campaign  integer,
  status    smallint         NOT NULL,
  amount    numeric(12,2),
  latency   double precision NOT NULL,
  bytes     bigint           NOT NULL,
  converted boolean          NOT NULL
);
