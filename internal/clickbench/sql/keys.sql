ALTER TABLE hits ADD PRIMARY KEY (CounterID, EventDate, UserID, EventTime, WatchID);
